#include "runtime/bootstrap/launch.h"

#include <charconv>

namespace tern {
namespace {

constexpr int kMaxRanks = 1 << 20;
constexpr int kMaxPort = 65535;

struct Range {
  int least;
  int most;
};

class Variables {
 public:
  explicit Variables(const EnvironmentLookup& lookup) : lookup_(lookup) {}

  bool has(std::string_view name) const { return lookup_(name).has_value(); }
  std::optional<std::string> text(std::string_view name) const { return lookup_(name); }

  Result<int> number(std::string_view name, Range range) const {
    const auto value = lookup_(name);
    if (!value)
      return error(Code::kInvalidArgument, "{} is not set, but other variables of its launcher are", name);
    int number = 0;
    const auto [end, problem] = std::from_chars(value->data(), value->data() + value->size(), number);
    if (problem != std::errc() || end != value->data() + value->size() || number < range.least ||
        number > range.most) {
      return error(Code::kInvalidArgument, "{}=\"{}\" is not a number from {} to {}", name, *value,
                   range.least, range.most);
    }
    return number;
  }

 private:
  const EnvironmentLookup& lookup_;
};

Result<Launch> place(const Variables& variables, std::string_view rank_name, std::string_view size_name) {
  Launch launch;
  TERN_ASSIGN(launch.size, variables.number(size_name, {1, kMaxRanks}));
  TERN_ASSIGN(launch.rank, variables.number(rank_name, {0, launch.size - 1}));
  return launch;
}

Status add_master(const Variables& variables, Launch& launch) {
  if (!variables.has("MASTER_ADDR")) {
    return error(Code::kInvalidArgument,
                 "MASTER_ADDR is not set: rank {} of {} does not know where rank 0 is", launch.rank,
                 launch.size);
  }
  launch.rendezvous = Rendezvous::kTcp;
  launch.address = *variables.text("MASTER_ADDR");
  TERN_ASSIGN(launch.port, variables.number("MASTER_PORT", {1, kMaxPort - 1}));
  if (variables.has("TORCHELASTIC_RUN_ID")) ++launch.port;
  return {};
}

Result<Launch> by_variables(const Variables& variables) {
  TERN_ASSIGN(Launch launch, place(variables, "RANK", "WORLD_SIZE"));
  if (launch.size > 1) TERN_TRY(add_master(variables, launch));
  return launch;
}

Result<Launch> by_open_mpi(const Variables& variables) {
  TERN_ASSIGN(Launch launch, place(variables, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"));
  launch.rendezvous = Rendezvous::kMpi;
  if (variables.has("MASTER_ADDR") && variables.has("MASTER_PORT")) TERN_TRY(add_master(variables, launch));
  return launch;
}

bool is_srun(const Variables& variables) {
  return variables.has("SLURM_PROCID") &&
         (!variables.has("PMI_RANK") || variables.text("PMI_RANK") == variables.text("SLURM_PROCID")) &&
         (variables.has("SLURM_STEP_NUM_TASKS") || variables.has("SLURM_NTASKS"));
}

// The same on all tasks of a step, and rarely that of another job.
Result<int> port_of_step(const Variables& variables) {
  int job = 0;
  int step = 0;
  constexpr Range kAny = {0, 2147483647};
  if (variables.has("SLURM_JOB_ID")) {
    TERN_ASSIGN(job, variables.number("SLURM_JOB_ID", kAny));
  }
  if (variables.has("SLURM_STEP_ID")) {
    TERN_ASSIGN(step, variables.number("SLURM_STEP_ID", kAny));
  }
  constexpr uint64_t kFirstPort = 20000;
  constexpr uint64_t kPorts = 10000;
  return static_cast<int>(kFirstPort +
                          (static_cast<uint64_t>(job) * 31 + static_cast<uint64_t>(step)) % kPorts);
}

Result<Launch> by_srun(const Variables& variables) {
  const bool has_step = variables.has("SLURM_STEP_NUM_TASKS");
  TERN_ASSIGN(Launch launch,
              place(variables, "SLURM_PROCID", has_step ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS"));
  if (launch.size == 1) return launch;
  launch.rendezvous = Rendezvous::kTcp;
  if (const auto master = variables.text("MASTER_ADDR"))
    launch.address = *master;
  else if (const auto hosts = variables.text("SLURM_STEP_NODELIST"))
    launch.address = first_host_of(*hosts);
  else if (const auto node = variables.text("SLURM_LAUNCH_NODE_IPADDR"))
    launch.address = *node;
  else
    return error(Code::kInvalidArgument,
                 "none of MASTER_ADDR, SLURM_STEP_NODELIST and SLURM_LAUNCH_NODE_IPADDR is set");
  if (variables.has("MASTER_PORT")) {
    TERN_ASSIGN(launch.port, variables.number("MASTER_PORT", {1, kMaxPort}));
  } else {
    TERN_ASSIGN(launch.port, port_of_step(variables));
  }
  return launch;
}

Result<Launch> by_pmi(const Variables& variables) {
  TERN_ASSIGN(Launch launch, place(variables, "PMI_RANK", "PMI_SIZE"));
  if (launch.size == 1) return launch;
  if (!variables.has("MASTER_ADDR") || !variables.has("MASTER_PORT")) {
    return error(
        Code::kUnsupported,
        "started by an mpirun of the MPICH family (PMI_RANK is set), which Tern does not ask for an address: "
        "set MASTER_ADDR and MASTER_PORT, or use Open MPI's mpirun");
  }
  TERN_TRY(add_master(variables, launch));
  return launch;
}

}  // namespace

Result<Launch> detect_launch(const EnvironmentLookup& lookup) {
  const Variables variables(lookup);
  if (variables.has("RANK") || variables.has("WORLD_SIZE")) return by_variables(variables);
  if (variables.has("OMPI_COMM_WORLD_RANK") || variables.has("OMPI_COMM_WORLD_SIZE"))
    return by_open_mpi(variables);
  if (is_srun(variables)) return by_srun(variables);
  if (variables.has("PMI_RANK") || variables.has("PMI_SIZE")) return by_pmi(variables);
  return Launch();
}

std::string first_host_of(std::string_view slurm_node_list) {
  const size_t end = slurm_node_list.find_first_of(",[");
  std::string host(slurm_node_list.substr(0, end));
  if (end == std::string_view::npos || slurm_node_list[end] == ',') return host;
  const std::string_view numbers = slurm_node_list.substr(end + 1);
  host += numbers.substr(0, numbers.find_first_of("-,]"));
  const size_t close = numbers.find(']');
  if (close == std::string_view::npos) return host;
  const std::string_view suffix = numbers.substr(close + 1);
  return host + std::string(suffix.substr(0, suffix.find_first_of(",[")));
}

}  // namespace tern

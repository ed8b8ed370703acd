#include "bench/compare_group.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>

#include <algorithm>
#include <sstream>
#include <system_error>

#include "runtime/base/config.h"

namespace tern::bench {
namespace {

constexpr Seconds kStartTime{60};
constexpr Seconds kBatchTime{300};

/// The environment without what a launcher around compare has set: a nested mpirun must not take its ranks
/// for its own.
std::vector<std::string> clean_environment() {
  constexpr std::string_view kForeign[] = {
      "OMPI_",           "PMIX_",           "PMI_",  "ORTE_",       "PRTE_",   "HYDRA_",
      "MPI_LOCALNRANKS", "MPI_LOCALRANKID", "RANK=", "WORLD_SIZE=", "MASTER_", "LOCAL_RANK="};
  std::vector<std::string> kept = environment_variables();
  std::erase_if(kept, [&](const std::string& variable) {
    return std::any_of(std::begin(kForeign), std::end(kForeign),
                       [&](std::string_view prefix) { return variable.starts_with(prefix); });
  });
  return kept;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> list;
  list.reserve(texts.size() + 1);
  for (std::string& text : texts) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

Result<pid_t> spawn(std::vector<std::string> args, std::vector<std::string> variables) {
  pid_t pid = -1;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);  // stdout is compare's table
  const int failed = ::posix_spawnp(&pid, args[0].c_str(), &actions, nullptr, pointers(args).data(),
                                    pointers(variables).data());
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0)
    return error(Code::kNotFound, "cannot start {}: {}", args[0], std::generic_category().message(failed));
  return pid;
}

/// A TCP port that nobody has at this moment; 0 when there is none.
int free_port() {
  const Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0) return 0;
  if (::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  return ntohs(address.sin_port);
}

std::vector<std::string> mpirun_command(const Contender& contender, const GroupOptions& options) {
  std::vector<std::string> command = {contender.launcher, "-n", fmt::format("{}", options.n_ranks)};
  if (contender.launch == Launch::kOpenMpi) {
    // Ranks may outnumber cores, and every library gets to place its threads where the others may.
    for (const char* word : {"--oversubscribe", "--bind-to", "none"}) command.emplace_back(word);
    if (::geteuid() == 0) command.emplace_back("--allow-run-as-root");
    std::istringstream words(options.mpirun_args);
    for (std::string word; words >> word;) command.push_back(word);
  }
  return command;
}

Result<std::vector<pid_t>> launch(const Contender& contender, const GroupOptions& options,
                                  const std::string& socket) {
  std::vector<pid_t> processes;
  std::vector<std::string> variables = clean_environment();
  variables.insert(variables.end(), options.settings.begin(), options.settings.end());
  if (contender.launch != Launch::kEnvironment) {
    std::vector<std::string> command = mpirun_command(contender, options);
    command.push_back(contender.program);
    command.push_back(socket);
    TERN_ASSIGN(const pid_t pid, spawn(command, variables));
    processes.push_back(pid);
    return processes;
  }
  variables.push_back(fmt::format("WORLD_SIZE={}", options.n_ranks));
  variables.emplace_back("MASTER_ADDR=127.0.0.1");
  variables.push_back(fmt::format("MASTER_PORT={}", free_port()));
  for (int r = 0; r < options.n_ranks; ++r) {
    std::vector<std::string> own = variables;
    own.push_back(fmt::format("RANK={}", r));
    TERN_ASSIGN(const pid_t pid, spawn({contender.program, socket}, own));
    processes.push_back(pid);
  }
  return processes;
}

/// The far side's sentence after "error" or "no".
std::string rest_after_word(const std::string& line) {
  const size_t space = line.find(' ');
  return space == std::string::npos ? "" : line.substr(space + 1);
}

}  // namespace

Result<Group> Group::start(const Contender& contender, const GroupOptions& options) {
  const std::string folder = fmt::format("{}/{}{}", options.folder, contender.name, options.n_ranks);
  if (::mkdir(folder.c_str(), 0700) != 0)
    return error(Code::kIo, "cannot make the folder {}: {}", folder, std::generic_category().message(errno));
  const std::string socket = folder + "/s";
  TERN_ASSIGN(LineListener listener, LineListener::create(socket));
  Group group;
  group.name_ = contender.name;
  TERN_ASSIGN(group.processes_, launch(contender, options, socket));
  TERN_TRY(group.adopt(listener, options.n_ranks));
  return group;
}

Status Group::adopt(LineListener& listener, int n_ranks) {
  const Deadline deadline = Deadline::after(kStartTime);
  std::vector<std::optional<LineSocket>> seats(static_cast<size_t>(n_ranks));
  for (int i = 0; i < n_ranks; ++i) {
    Result<LineSocket> socket = listener.accept(deadline);
    if (!socket.ok())
      return error(Code::kTimeout, "{} of {} ranks of {} came within {} s", i, n_ranks, name_,
                   kStartTime.count());
    TERN_ASSIGN(const std::string hello, socket->read_line(deadline));
    std::istringstream words(hello);
    std::string word;
    int rank = -1;
    int size = 0;
    words >> word >> rank >> size >> word;
    std::getline(words >> std::ws, version_);
    if (!words || size != n_ranks || rank < 0 || rank >= n_ranks || seats[static_cast<size_t>(rank)])
      return error(Code::kCorrupt, "a rank of {} said '{}' where {} ranks were started", name_, hello,
                   n_ranks);
    seats[static_cast<size_t>(rank)].emplace(std::move(*socket));
  }
  for (auto& seat : seats) ranks_.push_back(std::move(*seat));
  return {};
}

Group::~Group() {
  for (LineSocket& rank : ranks_) {
    if (!rank.write_line("quit").ok()) broken_ = true;
  }
  // A launcher passes SIGTERM on to its ranks.
  for (const pid_t process : processes_) {
    if (broken_ || ranks_.empty()) ::kill(process, SIGTERM);
  }
  for (const pid_t process : processes_) ::waitpid(process, nullptr, 0);
}

Result<std::optional<BatchAnswer>> Group::run(const BatchRequest& request) {
  auto answer = ask(request);
  if (!answer.ok()) broken_ = true;
  return answer;
}

Result<std::optional<BatchAnswer>> Group::ask(const BatchRequest& request) {
  const std::string line =
      fmt::format("run {} {} {} {} {}", tern::bench::name(request.exercise), request.count,
                  request.shared ? "shared" : "plain", request.n_warmup, request.n_iters);
  for (LineSocket& rank : ranks_) TERN_TRY(rank.write_line(line));
  const Deadline deadline = Deadline::after(kBatchTime);
  BatchAnswer total;
  bool has_it = true;
  for (size_t r = 0; r < ranks_.size(); ++r) {
    const Result<std::string> answer = ranks_[r].read_line(deadline);
    if (!answer.ok())
      return error_at(static_cast<int>(r), answer.error().code, "{} rank {} on '{}': {}", name_, r, line,
                      answer.error().message);
    if (answer->starts_with("no ")) {
      has_it = false;
      continue;
    }
    std::istringstream words(*answer);
    BatchAnswer one;
    if (!(words >> one.seconds >> one.n_wrong))
      return error_at(static_cast<int>(r), Code::kInternal, "{} rank {} on '{}': {}", name_, r, line,
                      rest_after_word(*answer));
    total.seconds = std::max(total.seconds, one.seconds);
    total.n_wrong += one.n_wrong;
  }
  if (!has_it) return std::optional<BatchAnswer>();
  return std::optional<BatchAnswer>(total);
}

}  // namespace tern::bench

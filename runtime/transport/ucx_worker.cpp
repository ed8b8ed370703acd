#include "runtime/transport/ucx_worker.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <ucs/config/global_opts.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <mutex>

#include "runtime/base/clock.h"
#include "runtime/base/config.h"
#include "runtime/base/log.h"

namespace tern::ucx {
namespace {

// Payloads are handed out in place: aligned for any vector instruction and for whole cache lines.
constexpr size_t kPayloadAlignment = 64;

Error refused(std::string_view what, ucs_status_t status) {
  return error(Code::kIo, "UCX refuses to {}: {}", what, ucs_status_string(status));
}

struct ConfigTraits {
  using type = ucp_config_t*;
  static constexpr type null() { return nullptr; }
  static void close(type config) noexcept { ucp_config_release(config); }
};

struct Preference {
  const char* name;  // as in ucp_config_modify(); the environment has UCX_<name>
  const char* value;
  bool even_with_rdma;  // also where there are RDMA devices
};

// What we prefer to UCX's defaults; the environment variable, where a user has set it, wins.
// The sizes are for TCP: a rendezvous costs it two round trips and wakes, which below 1 MiB take longer than
// the copy that they save, and a segment costs a system call. Found on 2 cores over loopback with
// `transport_perf`.
constexpr Preference kPreferences[] = {
    // Ranks that may share memory do so by the shm transport; ranks that may not (other TERN_HOST_ID) must
    // not here.
    {"TLS", "^sm", true},
    // Else UCX stripes over every interface that is up, loopback and container bridges included.
    {"CM_USE_ALL_DEVICES", "n", true},
    {"TCP_TX_SEG_SIZE", "256k", true},
    {"TCP_RX_SEG_SIZE", "256k", true},
    {"RNDV_THRESH", "1m", false},
};

// UCX reports on stderr what we report as errors of calls; a user who wants to see its view sets
// UCX_LOG_LEVEL.
void quieten() {
  if (!environment("UCX_LOG_LEVEL")) ucs_global_opts_set_value("LOG_LEVEL", "fatal");
}

size_t size_of_address(const sockaddr_storage& address) {
  return address.ss_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
}

}  // namespace

bool has_rdma_device() {
  std::error_code problem;
  const std::filesystem::directory_iterator devices("/sys/class/infiniband", problem);
  return !problem && devices != std::filesystem::directory_iterator();
}

Result<sockaddr_storage> socket_address(const std::string& address, int port) {
  sockaddr_storage storage = {};
  auto& v4 = reinterpret_cast<sockaddr_in&>(storage);
  auto& v6 = reinterpret_cast<sockaddr_in6&>(storage);
  if (inet_pton(AF_INET, address.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    v4.sin_port = htons(static_cast<uint16_t>(port));
  } else if (inet_pton(AF_INET6, address.c_str(), &v6.sin6_addr) == 1) {
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(static_cast<uint16_t>(port));
  } else {
    return error(Code::kCorrupt, "\"{}\" is not a numeric IP address", address);
  }
  return storage;
}

Result<std::unique_ptr<Worker>> Worker::create(const Options& options) {
  // UCX reads and writes settings of the whole process while it starts; in tests several ranks are threads of
  // it.
  static std::mutex starting;
  const std::lock_guard lock(starting);
  std::unique_ptr<Worker> worker(new Worker);
  TERN_TRY(worker->open_context());
  TERN_TRY(worker->open_worker(options.client));
  TERN_TRY(worker->listen(options.address));
  return worker;
}

Status Worker::open_context() {
  quieten();
  ucp_config_t* raw_config = nullptr;
  ucs_status_t status = ucp_config_read(nullptr, nullptr, &raw_config);
  if (status != UCS_OK) return refused("read its configuration", status);
  const Handle<ConfigTraits> config(raw_config);
  for (const Preference& preference : kPreferences) {
    if (environment(std::string("UCX_") + preference.name)) continue;
    if (!preference.even_with_rdma && has_rdma_device()) continue;
    status = ucp_config_modify(raw_config, preference.name, preference.value);
    if (status != UCS_OK) return refused(fmt::format("set {}={}", preference.name, preference.value), status);
  }
  ucp_params_t params = {};
  params.field_mask = UCP_PARAM_FIELD_FEATURES;
  params.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
  ucp_context_h context = nullptr;
  status = ucp_init(&params, raw_config, &context);
  if (status != UCS_OK) return refused("start", status);
  context_.reset(context);
  return {};
}

Status Worker::open_worker(uint64_t client) {
  ucp_worker_params_t params = {};
  params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE | UCP_WORKER_PARAM_FIELD_CLIENT_ID |
                      UCP_WORKER_PARAM_FIELD_AM_ALIGNMENT;
  params.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  params.client_id = client;
  params.am_alignment = kPayloadAlignment;
  ucp_worker_h worker = nullptr;
  ucs_status_t status = ucp_worker_create(context_.get(), &params, &worker);
  if (status != UCS_OK) return refused("make a worker", status);
  worker_.reset(worker);
  status = ucp_worker_get_efd(worker, &event_fd_);
  if (status != UCS_OK) return refused("wake sleepers", status);
  return {};
}

Status Worker::listen(const std::string& address) {
  TERN_ASSIGN(const sockaddr_storage where, socket_address(address, 0));
  ucp_listener_params_t params = {};
  params.field_mask = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR | UCP_LISTENER_PARAM_FIELD_CONN_HANDLER;
  params.sockaddr.addr = reinterpret_cast<const sockaddr*>(&where);
  params.sockaddr.addrlen = static_cast<socklen_t>(size_of_address(where));
  params.conn_handler.cb = &Worker::on_connection;
  params.conn_handler.arg = this;
  ucp_listener_h listener = nullptr;
  ucs_status_t status = ucp_listener_create(worker_.get(), &params, &listener);
  if (status != UCS_OK) return refused(fmt::format("listen on {}", address), status);
  listener_.reset(listener);
  ucp_listener_attr_t attributes = {};
  attributes.field_mask = UCP_LISTENER_ATTR_FIELD_SOCKADDR;
  status = ucp_listener_query(listener, &attributes);
  if (status != UCS_OK) return refused(fmt::format("tell the port it listens on at {}", address), status);
  port_ = ntohs(attributes.sockaddr.ss_family == AF_INET6
                    ? reinterpret_cast<const sockaddr_in6&>(attributes.sockaddr).sin6_port
                    : reinterpret_cast<const sockaddr_in&>(attributes.sockaddr).sin_port);
  return {};
}

Worker::~Worker() {
  if (!worker_) return;
  for (const ucp_conn_request_h request : waiting_) ucp_listener_reject(listener_.get(), request);
  listener_.reset();
  while (!endpoints_.empty()) close(endpoints_.back());
  while (ucp_worker_progress(worker_.get()) != 0) {
  }
}

Status Worker::start(const Events& events, std::vector<uint64_t> clients) {
  events_ = events;
  clients_ = std::move(clients);
  const auto handle = [&](unsigned id, ucp_am_recv_callback_t callback) {
    ucp_am_handler_param_t params = {};
    params.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
                        UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
    params.id = id;
    params.flags = UCP_AM_FLAG_WHOLE_MSG | UCP_AM_FLAG_PERSISTENT_DATA;
    params.cb = callback;
    params.arg = events_.owner;
    return ucp_worker_set_am_recv_handler(worker_.get(), &params);
  };
  for (unsigned id = 0; id < events_.on_active_message.size(); ++id) {
    const ucs_status_t status = handle(id, events_.on_active_message[id]);
    if (status != UCS_OK) return refused("take active messages", status);
  }
  return {};
}

bool Worker::arm() {
  return waiting_.empty() && ucp_worker_arm(worker_.get()) == UCS_OK;
}

bool Worker::progress() {
  const bool worked = ucp_worker_progress(worker_.get()) != 0;
  // Not before start(): nobody could be told.
  if (!waiting_.empty() && events_.on_accepted != nullptr) [[unlikely]]
    accept_waiting();
  return worked;
}

void Worker::on_connection(ucp_conn_request_h request, void* self) {
  static_cast<Worker*>(self)->waiting_.push_back(request);
}

void Worker::accept_waiting() {
  for (const ucp_conn_request_h request : std::exchange(waiting_, {})) {
    ucp_conn_request_attr_t attributes = {};
    attributes.field_mask = UCP_CONN_REQUEST_ATTR_FIELD_CLIENT_ID;
    const ucs_status_t status = ucp_conn_request_query(request, &attributes);
    if (status != UCS_OK ||
        std::find(clients_.begin(), clients_.end(), attributes.client_id) == clients_.end()) {
      log_warn("transport", "ucx: rejected a connection that does not know this communicator's session key");
      ucp_listener_reject(listener_.get(), request);
      continue;
    }
    ucp_ep_params_t params = {};
    params.field_mask = UCP_EP_PARAM_FIELD_CONN_REQUEST;
    params.conn_request = request;
    const auto endpoint = make_endpoint(params);
    if (endpoint) events_.on_accepted(events_.owner, attributes.client_id, *endpoint);
  }
}

Result<ucp_ep_h> Worker::connect(const sockaddr_storage& address) {
  ucp_ep_params_t params = {};
  params.field_mask = UCP_EP_PARAM_FIELD_FLAGS | UCP_EP_PARAM_FIELD_SOCK_ADDR;
  params.flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER | UCP_EP_PARAMS_FLAGS_SEND_CLIENT_ID;
  params.sockaddr.addr = reinterpret_cast<const sockaddr*>(&address);
  params.sockaddr.addrlen = static_cast<socklen_t>(size_of_address(address));
  return make_endpoint(params);
}

Result<ucp_ep_h> Worker::make_endpoint(ucp_ep_params_t params) {
  params.field_mask |= UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
  params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  params.err_handler.cb = events_.on_error;
  params.err_handler.arg = events_.owner;
  ucp_ep_h endpoint = nullptr;
  const ucs_status_t status = ucp_ep_create(worker_.get(), &params, &endpoint);
  if (status != UCS_OK) return refused("make an end point", status);
  endpoints_.push_back(endpoint);
  return endpoint;
}

void Worker::close(ucp_ep_h endpoint) {
  std::erase(endpoints_, endpoint);
  ucp_request_param_t params = {};
  params.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  params.flags = UCP_EP_CLOSE_FLAG_FORCE;
  const ucs_status_ptr_t request = ucp_ep_close_nbx(endpoint, &params);
  if (!UCS_PTR_IS_PTR(request)) return;
  while (ucp_request_check_status(request) == UCS_INPROGRESS) ucp_worker_progress(worker_.get());
  ucp_request_free(request);
}

void Worker::flush(Seconds at_most) {
  const Deadline deadline = Deadline::after(at_most);
  const ucp_request_param_t params = {};
  const ucs_status_ptr_t request = ucp_worker_flush_nbx(worker_.get(), &params);
  if (!UCS_PTR_IS_PTR(request)) return;
  while (ucp_request_check_status(request) == UCS_INPROGRESS && !deadline.passed()) progress();
  ucp_request_free(request);
}

}  // namespace tern::ucx

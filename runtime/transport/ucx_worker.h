// One UCX worker with a listener: everything about UCX that does not depend on messages.
#pragma once

#include <sys/socket.h>
#include <ucp/api/ucp.h>

#include <memory>
#include <string>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/handle.h"
#include "runtime/base/status.h"

namespace tern::ucx {

/// What the owner of a worker is told, from inside Worker::progress().
struct Events {
  void* owner = nullptr;                    ///< the argument of all
  ucp_err_handler_cb_t on_error = nullptr;  ///< an end point failed
  void (*on_accepted)(void* owner, uint64_t client,
                      ucp_ep_h endpoint) = nullptr;       ///< who, and the end point to it
  std::vector<ucp_am_recv_callback_t> on_active_message;  ///< by id
};

/// Owns context, worker, listener and all end points.
///
/// Strangers: a connection whose client number is not in `clients` is rejected before an end point is made
/// for it. Threads: one at a time.
class Worker {
 public:
  struct Options {
    std::string address;  ///< numeric; where to listen
    uint64_t client = 0;  ///< this rank's number, which its connection requests carry
  };
  /// Errors: kIo, with UCX's words.
  static Result<std::unique_ptr<Worker>> create(const Options& options);
  /// Closes all end points by force: no byte is read from or written to callers' memory afterwards.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// Messages and connections are handled from now on. clients: whom to accept.
  Status start(const Events& events, std::vector<uint64_t> clients);

  int port() const { return port_; }
  ucp_worker_h raw() const { return worker_.get(); }
  /// Readable when there may be something to progress; see arm().
  int event_fd() const { return event_fd_; }
  /// True when it is safe to wait for event_fd(); false when there is something to progress now.
  bool arm();
  /// True when UCX did something.
  bool progress();

  /// Starts connecting; messages may be sent at once. Errors: kIo.
  Result<ucp_ep_h> connect(const sockaddr_storage& address);
  /// The peer's end of the connection breaks. Not from inside a callback.
  void close(ucp_ep_h endpoint);
  /// Waits until what was sent on all end points has left this machine, at most so long.
  void flush(Seconds at_most);

 private:
  struct ContextTraits {
    using type = ucp_context_h;
    static constexpr type null() { return nullptr; }
    static void close(type context) noexcept { ucp_cleanup(context); }
  };
  struct WorkerTraits {
    using type = ucp_worker_h;
    static constexpr type null() { return nullptr; }
    static void close(type worker) noexcept { ucp_worker_destroy(worker); }
  };
  struct ListenerTraits {
    using type = ucp_listener_h;
    static constexpr type null() { return nullptr; }
    static void close(type listener) noexcept { ucp_listener_destroy(listener); }
  };

  Worker() = default;
  Status open_context();
  Status open_worker(uint64_t client);
  Status listen(const std::string& address);
  Result<ucp_ep_h> make_endpoint(ucp_ep_params_t params);
  void accept_waiting();
  static void on_connection(ucp_conn_request_h request, void* self);

  Handle<ContextTraits> context_;
  Handle<WorkerTraits> worker_;
  Handle<ListenerTraits> listener_;
  int event_fd_ = -1;
  int port_ = 0;
  Events events_;
  std::vector<uint64_t> clients_;
  std::vector<ucp_conn_request_h> waiting_;  // accepted outside the callback
  std::vector<ucp_ep_h> endpoints_;
};

bool has_rdma_device();

/// Errors: kCorrupt when it is not a numeric IP address.
Result<sockaddr_storage> socket_address(const std::string& address, int port);

}  // namespace tern::ucx

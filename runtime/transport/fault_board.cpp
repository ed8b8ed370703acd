#include "runtime/transport/fault_board.h"

#include <algorithm>
#include <cstring>
#include <string>

namespace tern::mailbox {

void publish(Fault& fault, const Error& error) {
  uint32_t expected = kNoFault;
  // relaxed is enough to claim the board: the text is handed over by the release store below.
  if (!fault.state.compare_exchange_strong(expected, kFaultBeingWritten, std::memory_order_relaxed)) return;
  fault.code = error.code;
  fault.rank = error.rank;
  fault.n_text = static_cast<uint32_t>(std::min(error.message.size(), sizeof(fault.text)));
  std::memcpy(fault.text, error.message.data(), fault.n_text);
  fault.state.store(kFault, std::memory_order_release);  // whoever sees kFault sees the text
}

std::optional<Error> read(const Fault& fault) {
  if (fault.state.load(std::memory_order_acquire) != kFault) return std::nullopt;  // pairs with publish()
  return Error{fault.code, std::string(fault.text, fault.n_text), fault.rank};
}

}  // namespace tern::mailbox

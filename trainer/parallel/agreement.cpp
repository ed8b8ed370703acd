#include "trainer/parallel/agreement.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

namespace tern::trainer {
namespace {

/// Long enough for a checkpoint's write on one rank while the others wait.
constexpr Seconds kPatience{3600};
constexpr size_t kRecordBytes = 1024;
constexpr size_t kTextBytes = 4096;

/// [0]: 1 for a failure, [1]: its code, [2]: length low, [3]: length high, then the sentence.
std::array<uint8_t, kRecordBytes> to_record(const Status& status) {
  std::array<uint8_t, kRecordBytes> record = {};
  if (status.ok()) return record;
  constexpr size_t kHead = 4;
  const std::string& message = status.error().message;
  const size_t n = std::min(message.size(), kRecordBytes - kHead);
  record[0] = 1;
  record[1] = static_cast<uint8_t>(status.error().code);
  record[2] = static_cast<uint8_t>(n & 0xff);
  record[3] = static_cast<uint8_t>(n >> 8);
  std::memcpy(record.data() + kHead, message.data(), n);
  return record;
}

Error from_record(const uint8_t* record, int rank) {
  const size_t n = record[2] | static_cast<size_t>(record[3]) << 8;
  return Error{static_cast<Code>(record[1]), std::string(reinterpret_cast<const char*>(record) + 4, n), rank};
}

}  // namespace

Status agree(Communicator& comm, const Status& mine) {
  const std::array<uint8_t, kRecordBytes> record = to_record(mine);
  std::vector<uint8_t> all(kRecordBytes * static_cast<size_t>(comm.size()));
  CallOptions call;
  call.timeout = kPatience;
  TERN_TRY(comm.all_gather(std::span<const uint8_t>(record), std::span<uint8_t>(all), call));
  for (int rank = 0; rank < comm.size(); ++rank) {
    const uint8_t* theirs = all.data() + static_cast<size_t>(rank) * kRecordBytes;
    if (theirs[0] != 0) return from_record(theirs, rank);
  }
  return {};
}

Result<std::string> text_of_rank_0(Communicator& comm, const std::string& text) {
  std::array<uint8_t, kTextBytes> bytes = {};
  TERN_CHECK(text.size() < kTextBytes);
  std::memcpy(bytes.data(), text.data(), text.size());
  TERN_TRY(comm.broadcast(std::span<uint8_t>(bytes), 0));
  return std::string(reinterpret_cast<const char*>(bytes.data()));
}

}  // namespace tern::trainer

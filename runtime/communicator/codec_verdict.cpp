#include "runtime/communicator/codec_verdict.h"

#include <algorithm>

namespace tern {

CodecVerdict weigh(const CodecSpec& codec, double encoded_seconds, double dense_seconds,
                   double hidden_seconds) {
  CodecVerdict verdict{.dense_seconds = dense_seconds, .encoded_seconds = encoded_seconds};
  const double exposed = std::max(0.0, dense_seconds - hidden_seconds);
  if (exposed == 0) {
    verdict.reason = CodecReason::kHidden;
    return verdict;
  }
  const bool pays = std::max(0.0, encoded_seconds - hidden_seconds) < kWorthEncoding * exposed;
  verdict.reason = pays ? CodecReason::kPays : CodecReason::kDoesNotPay;
  if (pays) verdict.codec = codec;
  return verdict;
}

}  // namespace tern

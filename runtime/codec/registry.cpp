// The one list of codecs. A new codec is a file with a function that returns its row, and a line in each
// place here.
#include <array>

#include "runtime/codec/codec.h"

namespace tern {

CodecInfo none_codec();
CodecInfo bf16_codec();
CodecInfo q8_codec();
CodecInfo topk_codec();
CodecInfo fp16_codec();
CodecInfo fp8_codec();
CodecInfo mxfp8_codec();
CodecInfo q6_codec();
CodecInfo q5_codec();
CodecInfo q4h_codec();
CodecInfo sign1_codec();

std::span<const CodecInfo> codecs() {
  static const std::array kCodecs = {none_codec(), bf16_codec(), q8_codec(),    topk_codec(),
                                     fp16_codec(), fp8_codec(),  mxfp8_codec(), q6_codec(),
                                     q5_codec(),   q4h_codec(),  sign1_codec()};
  return kCodecs;
}

const CodecInfo& info(CodecId id) {
  return codecs()[static_cast<size_t>(id)];
}

}  // namespace tern

#include "runtime/bootstrap/frame.h"

#include "runtime/bootstrap/fields.h"

namespace tern {

void append_frame(std::string& out, const Frame& frame) {
  const size_t n_body =
      sizeof(uint8_t) + sizeof(uint64_t) + 2 * sizeof(uint32_t) + frame.key.size() + frame.value.size();
  append_number(out, static_cast<uint32_t>(n_body));
  append_number(out, static_cast<uint8_t>(frame.type));
  append_number(out, frame.id);
  append_text(out, frame.key);
  append_text(out, frame.value);
}

Result<std::optional<Frame>> take_frame(std::string& buffer) {
  FieldReader head(buffer);
  const auto n_body = head.number<uint32_t>();
  if (!n_body) return std::optional<Frame>();
  if (*n_body > kMaxFrameBytes) {
    return error(Code::kCorrupt, "a store frame of {} bytes (at most {} are allowed)", *n_body,
                 kMaxFrameBytes);
  }
  if (buffer.size() < sizeof(uint32_t) + *n_body) return std::optional<Frame>();

  FieldReader body(std::string_view(buffer).substr(sizeof(uint32_t), *n_body));
  const auto type = body.number<uint8_t>();
  const auto id = body.number<uint64_t>();
  const auto key = body.text();
  const auto value = body.text();
  if (!value || !body.at_end() || *type > static_cast<uint8_t>(kLastFrameType)) {
    return error(Code::kCorrupt, "a store frame of {} bytes whose fields do not add up", *n_body);
  }
  Frame frame{static_cast<FrameType>(*type), *id, std::string(*key), std::string(*value)};
  buffer.erase(0, sizeof(uint32_t) + *n_body);
  return std::optional<Frame>(std::move(frame));
}

std::string pack_error(const Error& error) {
  std::string bytes;
  append_number(bytes, static_cast<uint8_t>(error.code));
  append_number(bytes, static_cast<int32_t>(error.rank));
  append_text(bytes, error.message);
  return bytes;
}

Error unpack_error(std::string_view bytes) {
  FieldReader reader(bytes);
  const auto code = reader.number<uint8_t>();
  const auto rank = reader.number<int32_t>();
  const auto message = reader.text();
  if (!message || *code == 0 || *code > static_cast<uint8_t>(Code::kInternal)) {
    return error(Code::kCorrupt, "an error of {} bytes that cannot be read", bytes.size());
  }
  return Error{static_cast<Code>(*code), std::string(*message), *rank};
}

}  // namespace tern

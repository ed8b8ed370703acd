#include "runtime/transport/ucx.h"

namespace tern {

std::string ucx_domain(const World& /*world*/, std::string* why_not) {
  *why_not = "built without UCX (Debian: libucx-dev)";
  return "";
}

std::string ucx_drawback() {
  return "";  // it has worse: see ucx_domain()
}

Result<std::unique_ptr<Transport>> connect_ucx(const World& world, std::span<const int> /*members*/,
                                               std::string_view key) {
  std::string why_not;
  ucx_domain(world, &why_not);
  return error(Code::kUnsupported, "cannot connect {} by ucx: {}", key, why_not);
}

}  // namespace tern

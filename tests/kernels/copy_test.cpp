#include "kernels/copy.h"

#include <gtest/gtest.h>

#include <vector>

#include "runtime/base/philox.h"
#include "tests/kernels/simd_target.h"

namespace tern {
namespace {

class CopyOnEveryTarget : public test::OnSimdTarget {};
TERN_ON_EVERY_SIMD_TARGET(CopyOnEveryTarget);

TEST_P(CopyOnEveryTarget, CopiesExactlyTheBytesAsked) {
  Philox random(3);
  std::vector<std::byte> src(3000);
  for (std::byte& b : src) b = static_cast<std::byte>(random.next());
  for (const bool stream : {false, true}) {
    for (size_t n = 0; n < 2000; n += n < 300 ? 1 : 97) {
      const size_t from = n % 5;
      const size_t to = n % 67;
      std::vector<std::byte> dst(3000, std::byte{0x5A});
      std::vector<std::byte> want = dst;
      std::copy_n(src.begin() + static_cast<long>(from), n, want.begin() + static_cast<long>(to));
      copy(dst.data() + to, src.data() + from, n, {.stream = stream});
      ASSERT_EQ(dst, want) << n << " bytes, stream " << stream;
    }
  }
}

}  // namespace
}  // namespace tern

#include "runtime/base/crc32c.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/base/philox.h"

namespace tern {
namespace {

using Bytes = std::vector<std::byte>;

Bytes random_bytes(size_t n) {
  Philox random(11);
  Bytes bytes(n);
  for (std::byte& b : bytes) b = static_cast<std::byte>(random.next());
  return bytes;
}

// RFC 3720 appendix B.4, and the check value of the polynomial.
struct Vector {
  Bytes bytes;
  uint32_t crc;
};
std::vector<Vector> known_vectors() {
  Bytes ascending(32);
  Bytes descending(32);
  for (size_t i = 0; i < 32; ++i) ascending[i] = descending[31 - i] = static_cast<std::byte>(i);
  Bytes digits;
  for (const char c : std::string("123456789")) digits.push_back(static_cast<std::byte>(c));
  return {{{}, 0},
          {digits, 0xE3069283},
          {Bytes(32, std::byte{0}), 0x8A9136AA},
          {Bytes(32, std::byte{0xFF}), 0x62A8AB43},
          {ascending, 0x46DD794E},
          {descending, 0x113FDB5C}};
}

TEST(Crc32c, EveryImplementationGivesTheKnownValues) {
  for (const auto& [bytes, crc] : known_vectors()) {
    EXPECT_EQ(crc32c_software(bytes), crc) << bytes.size() << " bytes";
    EXPECT_EQ(crc32c(bytes), crc) << bytes.size() << " bytes";
  }
}

TEST(Crc32c, TheInstructionAgreesWithTheTablesAtEveryLengthAndOffset) {
  const Crc32cFunction hardware = crc32c_hardware();
  if (hardware == nullptr) GTEST_SKIP() << "this processor has no CRC32C instruction that Tern knows";
  const Bytes bytes = random_bytes(300);
  for (size_t offset = 0; offset < 9; ++offset) {
    for (size_t n = 0; n + offset <= bytes.size(); ++n) {
      const auto part = std::span(bytes).subspan(offset, n);
      ASSERT_EQ(hardware(part, 5), crc32c_software(part, 5)) << "offset " << offset << ", n " << n;
    }
  }
}

TEST(Crc32c, ContinuesAcrossPieces) {
  const Bytes bytes = random_bytes(100);
  for (size_t cut = 0; cut <= bytes.size(); ++cut) {
    const auto all = std::span(std::as_const(bytes));
    ASSERT_EQ(crc32c(all.subspan(cut), crc32c(all.first(cut))), crc32c(all)) << cut;
    ASSERT_EQ(crc32c_software(all.subspan(cut), crc32c_software(all.first(cut))), crc32c(all)) << cut;
  }
}

TEST(Crc32c, SeesEveryFlippedBit) {
  Bytes bytes = random_bytes(40);
  const uint32_t before = crc32c(bytes);
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    bytes[bit / 8] ^= std::byte{1} << (bit % 8);
    EXPECT_NE(crc32c(bytes), before) << bit;
    bytes[bit / 8] ^= std::byte{1} << (bit % 8);
  }
}

}  // namespace
}  // namespace tern

// Mutual proof, before anything else is read from a connection, that both ends know the world's secret.
//
// client -> server  hello      magic, rank, size, client's nonce
// server -> client  challenge  magic, server's nonce, MAC(key, "server" | hello | server's nonce)
// client -> server  proof      MAC(key, "client" | hello | server's nonce)
// All three have fixed sizes, so a stranger can make the server read 80 bytes and hash twice, no more.
// Without a secret the key is a constant: the exchange then only tells Tern from something else that listens
// there. Source: the challenge-response of ISO/IEC 9798-4 (mechanism 4) with HMAC-SHA-512-256 from libsodium.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tern {

using AuthKey = std::array<uint8_t, 32>;
AuthKey auth_key(std::string_view secret);
/// Takes as long whether the first byte differs or the last.
bool is_key(const AuthKey& key, std::string_view claimed);
/// 32 random bytes as hexadecimal text: a secret for a world that was given none.
std::string random_secret();

inline constexpr size_t kNonceBytes = 32;
inline constexpr size_t kMacBytes = 32;
inline constexpr size_t kMagicBytes = 8;
inline constexpr size_t kHelloBytes = kMagicBytes + 2 * sizeof(int32_t) + kNonceBytes;
inline constexpr size_t kChallengeBytes = kMagicBytes + kNonceBytes + kMacBytes;
inline constexpr size_t kProofBytes = kMacBytes;

struct Hello {
  int rank = 0;
  int size = 1;
};

std::string make_hello(Hello hello);
/// Nothing when the bytes do not start with this version's magic.
std::optional<Hello> read_hello(std::string_view bytes);

std::string make_challenge(const AuthKey& key, std::string_view hello);
enum class Verdict : uint8_t { kProven, kNotTern, kWrongSecret };
Verdict check_challenge(const AuthKey& key, std::string_view hello, std::string_view challenge);

std::string make_proof(const AuthKey& key, std::string_view hello, std::string_view challenge);
bool check_proof(const AuthKey& key, std::string_view hello, std::string_view challenge,
                 std::string_view proof);

}  // namespace tern

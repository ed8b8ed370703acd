#include "runtime/bootstrap/handshake.h"

#include <sodium.h>

#include "runtime/base/status.h"
#include "runtime/bootstrap/fields.h"

namespace tern {
namespace {

constexpr std::string_view kMagic = "TERNST01";
static_assert(kMagic.size() == kMagicBytes);
static_assert(sizeof(AuthKey) == crypto_auth_KEYBYTES && kMacBytes == crypto_auth_BYTES);

const uint8_t* bytes_of(std::string_view text) {
  return reinterpret_cast<const uint8_t*>(text.data());
}

std::string random_bytes(size_t n) {
  TERN_CHECK(sodium_init() >= 0);
  std::string bytes(n, '\0');
  randombytes_buf(bytes.data(), n);
  return bytes;
}

// The side's name keeps a challenge from being played back as a proof.
std::string authenticate(const AuthKey& key, std::string_view side, std::string_view hello,
                         std::string_view server_nonce) {
  const std::string message = fmt::format("{}|{}{}", side, hello, server_nonce);
  std::string mac(kMacBytes, '\0');
  crypto_auth(reinterpret_cast<uint8_t*>(mac.data()), bytes_of(message), message.size(), key.data());
  return mac;
}

std::string_view server_nonce_of(std::string_view challenge) {
  return challenge.substr(kMagicBytes, kNonceBytes);
}

}  // namespace

AuthKey auth_key(std::string_view secret) {
  AuthKey key;
  crypto_generichash(key.data(), key.size(), bytes_of(secret), secret.size(), nullptr, 0);
  return key;
}

bool is_key(const AuthKey& key, std::string_view claimed) {
  return claimed.size() == key.size() && sodium_memcmp(claimed.data(), key.data(), key.size()) == 0;
}

std::string random_secret() {
  const std::string bytes = random_bytes(32);
  std::string text(2 * bytes.size() + 1, '\0');
  sodium_bin2hex(text.data(), text.size(), bytes_of(bytes), bytes.size());
  text.pop_back();
  return text;
}

std::string make_hello(Hello hello) {
  std::string bytes(kMagic);
  append_number(bytes, static_cast<int32_t>(hello.rank));
  append_number(bytes, static_cast<int32_t>(hello.size));
  return bytes + random_bytes(kNonceBytes);
}

std::optional<Hello> read_hello(std::string_view bytes) {
  if (bytes.size() != kHelloBytes || !bytes.starts_with(kMagic)) return std::nullopt;
  FieldReader reader(bytes.substr(kMagicBytes));
  const auto rank = reader.number<int32_t>();
  const auto size = reader.number<int32_t>();
  return Hello{*rank, *size};
}

std::string make_challenge(const AuthKey& key, std::string_view hello) {
  const std::string nonce = random_bytes(kNonceBytes);
  return std::string(kMagic) + nonce + authenticate(key, "server", hello, nonce);
}

Verdict check_challenge(const AuthKey& key, std::string_view hello, std::string_view challenge) {
  if (challenge.size() != kChallengeBytes || !challenge.starts_with(kMagic)) return Verdict::kNotTern;
  const std::string mac = authenticate(key, "server", hello, server_nonce_of(challenge));
  const std::string_view claimed = challenge.substr(kMagicBytes + kNonceBytes);
  return sodium_memcmp(mac.data(), claimed.data(), kMacBytes) == 0 ? Verdict::kProven : Verdict::kWrongSecret;
}

std::string make_proof(const AuthKey& key, std::string_view hello, std::string_view challenge) {
  return authenticate(key, "client", hello, server_nonce_of(challenge));
}

bool check_proof(const AuthKey& key, std::string_view hello, std::string_view challenge,
                 std::string_view proof) {
  if (proof.size() != kProofBytes) return false;
  const std::string mac = make_proof(key, hello, challenge);
  return sodium_memcmp(mac.data(), proof.data(), kMacBytes) == 0;
}

}  // namespace tern

#include "syncopate/lifeline/proof.h"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <array>

#include "syncopate/base/error.h"

namespace syncopate::lifeline {
namespace {

std::string in_hexadecimal(const unsigned char* bytes, size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i) text += fmt::format("{:02x}", bytes[i]);
  return text;
}

}  // namespace

std::string random_key() {
  std::array<unsigned char, 16> bytes{};
  check(::RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) == 1, "no random numbers");
  return in_hexadecimal(bytes.data(), bytes.size());
}

std::string prove(std::string_view key, std::string_view what) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  const auto* bytes = reinterpret_cast<const unsigned char*>(what.data());
  check(::HMAC(::EVP_sha256(), key.data(), static_cast<int>(key.size()), bytes, what.size(), digest.data(),
               &size) != nullptr,
        "no HMAC-SHA256");
  return in_hexadecimal(digest.data(), size);
}

bool proves(std::string_view shown, std::string_view expected) {
  return shown.size() == expected.size() &&
         ::CRYPTO_memcmp(shown.data(), expected.data(), expected.size()) == 0;
}

}  // namespace syncopate::lifeline

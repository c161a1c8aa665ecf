#include "app/webhook/webhook_secret.h"

#include <array>
#include <utility>

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "k8s-client/auth/file.h"

namespace dhc {

Result<std::string> read_webhook_secret(const std::string& path) {
  constexpr std::size_t kMost = 4096;
  auto text = k8s::read_file(path, kMost);
  if (!text) {
    return fail(ErrorKind::Invalid, fmt::format("spec.webhook.secretFile: {}: mount a Secret there (Helm value "
                                                "webhook.secretName)",
                                                text.error().message));
  }
  while (text->ends_with('\n') || text->ends_with('\r')) text->pop_back();
  if (text->size() < kLeastSecret) {
    return fail(ErrorKind::Invalid, fmt::format("spec.webhook.secretFile: {} holds fewer than {} bytes: write a longer "
                                                "key, such as from openssl rand -hex 32",
                                                path, kLeastSecret));
  }
  return text;
}

std::string webhook_signature(std::string_view secret, std::string_view timestamp, std::string_view body) {
  const std::string text = fmt::format("{}.{}", timestamp, body);
  std::array<unsigned char, EVP_MAX_MD_SIZE> sum{};
  unsigned length = 0;
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): OpenSSL's bytes
  const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
  if (HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()), bytes, text.size(), sum.data(), &length) ==
      nullptr)
    return {};
  std::string signature = "sha256=";
  for (unsigned i = 0; i < length; ++i) signature += fmt::format("{:02x}", sum.at(i));
  return signature;
}

}  // namespace dhc

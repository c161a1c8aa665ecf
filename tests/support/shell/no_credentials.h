#pragma once
#include <stop_token>
#include <vector>

#include "k8s-client/client.h"

namespace dhc::test {

/// What a client shows to a server that asks for nothing.
class NoCredentials final : public k8s::Credentials {
 public:
  Result<std::vector<k8s::Header>> headers(std::stop_token /*stop*/) override { return std::vector<k8s::Header>{}; }
  void unauthorized() override {}
  Result<k8s::TlsMaterial> tls(std::stop_token /*stop*/) override { return k8s::TlsMaterial{}; }
};

}  // namespace dhc::test

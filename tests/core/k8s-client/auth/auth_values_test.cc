#include <optional>
#include <string>
#include <utility>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "k8s-client/auth/base64.h"
#include "k8s-client/auth/exec_credential.h"
#include "k8s-client/auth/server_url.h"
#include "k8s-client/auth/token.h"

using namespace dhc;
using namespace dhc::k8s;

namespace {

KubeExec plugin_at(KubeconfigPlace place) {
  KubeExec exec;
  exec.api_version = "client.authentication.k8s.io/v1";
  exec.command = "p";
  exec.place = std::move(place);
  return exec;
}

ExecCredential expiring(std::optional<WallTime> at) {
  ExecCredential credential;
  credential.token = "t";
  credential.expires_at = at;
  return credential;
}

}  // namespace

TEST_CASE("base64 comes back the same for every length") {
  std::string bytes;
  for (int i = 0; i < 300; ++i) {
    CHECK(base64_decode(base64_encode(bytes)) == bytes);
    bytes += static_cast<char>(i * 7);
  }
  CHECK(base64_encode("ab") == "YWI=");
  CHECK(base64_decode("YW\nI=\n") == "ab");
  for (const char* bad : {"A", "AB", "ABC", "A===", "====", "AB=C", "AB C", "A-_=", "YWI=YWI="}) {
    CAPTURE(bad);
    CHECK_FALSE(base64_decode(bad).has_value());
  }
}

TEST_CASE("a token is trimmed, and what may not stand in a header is refused without showing it") {
  CHECK(clean_token("  abc.def-_~+/=\r\n", "f") == "abc.def-_~+/=");
  CHECK(clean_token(" \n", "/t").error().message == "/t: the token is empty; write a token there");
  for (const std::string bad : {"secret\nInjected: x", "secret x", "secret\x7f", "secret\xc3\xa9"}) {
    const auto token = clean_token(bad, "/t");
    REQUIRE_FALSE(token);
    CHECK_FALSE(token.error().message.contains("secret"));
    CHECK(token.error().message.starts_with("/t: byte 7 is not allowed in a token"));
  }
  CHECK(clean_token(std::string(65536, 'a'), "f").has_value());
  CHECK_FALSE(clean_token(std::string(65537, 'a'), "f").has_value());
}

TEST_CASE("a server URL gives host, port and prefix") {
  CHECK(*parse_server_url("https://api.example") == Endpoint{true, "api.example", 443, ""});
  CHECK(*parse_server_url("https://10.0.0.1:6443/") == Endpoint{true, "10.0.0.1", 6443, ""});
  CHECK(*parse_server_url("https://[fd00::1]:6443/k8s/c-1//") == Endpoint{true, "fd00::1", 6443, "/k8s/c-1"});
  CHECK(*parse_server_url("https://[::1]") == Endpoint{true, "::1", 443, ""});
  CHECK(*parse_server_url("http://localhost:8001") == Endpoint{false, "localhost", 8001, ""});
  for (const char* bad :
       {"", "api:6443", "ftp://h", "https://", "https://:443", "https://u@h", "https://h?x", "https://h#x",
        "https://h:0", "https://h:65536", "https://h:1x", "https://fd00::1", "https://[fd00::1", "https://[h]",
        "https://[::1]x", "https://h /x", "https://h\r\nX: y", "https://h\\x"}) {
    CAPTURE(bad);
    CHECK_FALSE(parse_server_url(bad).has_value());
  }
}

TEST_CASE("a plugin is told the cluster only if the kubeconfig says so") {
  KubeExec exec = plugin_at({"f", 3});
  KubeCluster cluster;
  cluster.server = "https://h";
  cluster.tls_server_name = "n";
  cluster.exec_config_json = R"({"a":1})";
  auto info = nlohmann::json::parse(build_exec_info(exec, cluster, "PEM"));
  CHECK(info["kind"] == "ExecCredential");
  CHECK(info["spec"]["interactive"] == false);
  CHECK_FALSE(info["spec"].contains("cluster"));
  exec.provide_cluster_info = true;
  info = nlohmann::json::parse(build_exec_info(exec, cluster, "PEM"));
  CHECK(info["spec"]["cluster"]["server"] == "https://h");
  CHECK(info["spec"]["cluster"]["certificate-authority-data"] == base64_encode("PEM"));
  CHECK(info["spec"]["cluster"]["config"]["a"] == 1);
}

TEST_CASE("what a plugin prints is read or refused by name, and never quoted") {
  const KubeExec exec = plugin_at({"f", 3});
  const std::string head = R"({"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":)";
  const auto good =
      parse_exec_credential(exec, head + R"({"token":"t\n","expirationTimestamp":"2030-01-01T00:00:00Z"}})");
  REQUIRE(good);
  CHECK(good->token == "t");
  CHECK(good->expires_at.has_value());
  for (const std::string body :
       {R"({}})", R"({"clientKeyData":"hunter2"}})", R"({"token":5}})", R"({"token":"hunter2 x"}})",
        R"({"token":"hunter2","expirationTimestamp":"soon"}})", R"("hunter2"})"}) {
    CAPTURE(body);
    const auto bad = parse_exec_credential(exec, head + body);
    REQUIRE_FALSE(bad);
    CHECK(bad.error().message.starts_with("exec plugin 'p' (f:3)"));
    CHECK_FALSE(bad.error().message.contains("hunter2"));
  }
  CHECK_FALSE(parse_exec_credential(exec, "not json").has_value());
  CHECK_FALSE(
      parse_exec_credential(
          exec,
          R"({"apiVersion":"client.authentication.k8s.io/v1beta1","kind":"ExecCredential","status":{"token":"t"}})")
          .has_value());
}

TEST_CASE("a credential is renewed a minute before its end, or a tenth of its life before") {
  const WallTime got{std::chrono::hours(1)};
  CHECK_FALSE(renew_at(expiring({}), got).has_value());
  CHECK(renew_at(expiring(got + std::chrono::hours(1)), got) == got + std::chrono::minutes(59));
  CHECK(renew_at(expiring(got + std::chrono::seconds(100)), got) == got + std::chrono::seconds(90));
  CHECK(renew_at(expiring(got - std::chrono::seconds(5)), got) == got - std::chrono::seconds(5));
}

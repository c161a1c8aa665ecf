#include "k8s-client/auth/access.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <stop_token>
#include <string>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

#include <doctest/doctest.h>

#include "k8s-client/auth/file.h"
#include "tests/support/shell/loopback.h"

using namespace dhc;
using namespace dhc::k8s;

namespace {

/// A folder of its own that goes away with the test.
class TokenFolder {
 public:
  TokenFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "dhc-auth-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~TokenFolder() { std::filesystem::remove_all(path_); }
  TokenFolder(const TokenFolder&) = delete;
  TokenFolder& operator=(const TokenFolder&) = delete;

  [[nodiscard]] std::string path(const std::string& name) const { return path_ + "/" + name; }
  std::string write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(path(name)).parent_path());
    std::ofstream(path(name), std::ios::binary | std::ios::trunc) << text;
    return path(name);
  }
  std::string write_program(const std::string& name, const std::string& script) const {
    const std::string file = write(name, "#!/bin/sh\n" + script);
    ::chmod(file.c_str(), 0755);
    return file;
  }

 private:
  std::string path_;
};

AccessSurroundings nowhere() {
  AccessSurroundings around;
  around.exec = {.timeout = Seconds(20), .rest = Millis(0)};
  return around;
}

std::string kubeconfig(const std::string& user, const std::string& cluster = "") {
  return "current-context: x\ncontexts: [{name: x, context: {cluster: c, user: u}}]\nclusters:\n- name: c\n  cluster: "
         "{server: 'https://api.example:6443'" +
         cluster + "}\nusers:\n- name: u\n  user: {" + user + "}\n";
}

Result<KubeAccess> access_of(const TokenFolder& folder, const std::string& user, const std::string& cluster = "") {
  return default_access({.kubeconfig = folder.write("config", kubeconfig(user, cluster)), .context = ""}, nowhere());
}

std::string authorization(Credentials& credentials) {
  const auto headers = credentials.headers({});
  if (!headers) return "error: " + headers.error().message;
  for (const Header& header : *headers) {
    if (header.name == "Authorization") return header.value;
  }
  return "none";
}

const std::string kCertificate = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
const std::string kKey = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";

/// A script's last lines: they print a credential with this status, in which $n is a variable of the script.
std::string printing(const std::string& status) {
  return "cat <<END\n{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":\"ExecCredential\",\"status\":" +
         status + "}\nEND\n";
}

std::string exec_user(const std::string& more = "") {
  return "exec: {apiVersion: client.authentication.k8s.io/v1, command: ./plugin, interactiveMode: Never" + more + "}";
}

}  // namespace

TEST_CASE("a token file is read again for each request, and a bad one leaves the last good token") {
  const TokenFolder folder;
  const std::string token = folder.write("token", "first\n");
  const auto access = access_of(folder, "tokenFile: token");
  REQUIRE(access);
  Credentials& credentials = *access->credentials;
  CHECK(authorization(credentials) == "Bearer first");
  folder.write("token", "second");
  CHECK(authorization(credentials) == "Bearer second");
  folder.write("token", "");
  CHECK(authorization(credentials) == "Bearer second");
  CHECK(credentials.remedy().contains("which could not be read: " + token + ": the token is empty"));
  folder.write("token", std::string("third\0x", 7));
  CHECK(authorization(credentials) == "Bearer second");
  std::filesystem::remove(token);
  CHECK(authorization(credentials) == "Bearer second");
  // The kubelet's way: a symbolic link is swapped.
  folder.write("v2/token", "fourth");
  std::filesystem::create_symlink("v2/token", token);
  CHECK(authorization(credentials) == "Bearer fourth");
  CHECK_FALSE(credentials.remedy().contains("could not be read"));
}

TEST_CASE("a token file that never was good is an error with the remedy") {
  const TokenFolder folder;
  const auto access = access_of(folder, "tokenFile: token");
  REQUIRE(access);
  CHECK(authorization(*access->credentials)
            .contains(folder.path("token") + ": No such file or directory; write a token there"));
  folder.write("token", std::string(2'000'000, 'a'));
  CHECK(authorization(*access->credentials).contains("more than 1048576 bytes"));
  folder.write("token", std::string(70'000, 'a'));
  CHECK(authorization(*access->credentials).contains("too long for a token"));
}

TEST_CASE("token, password and impersonation become headers") {
  const TokenFolder folder;
  CHECK(authorization(*access_of(folder, "token: ' abc '")->credentials) == "Bearer abc");
  CHECK(authorization(*access_of(folder, "username: me, password: 'p:w'")->credentials) == "Basic bWU6cDp3");
  CHECK(authorization(*access_of(folder, "")->credentials) == "none");
  const auto access =
      access_of(folder, "token: t, as: bob, as-uid: '7', as-groups: [g, h], as-user-extra: {'acme.com/x y': [v]}");
  const auto headers = access->credentials->headers({});
  REQUIRE(headers);
  CHECK(*headers == std::vector<Header>{{"Impersonate-User", "bob"},
                                        {"Impersonate-Uid", "7"},
                                        {"Impersonate-Group", "g"},
                                        {"Impersonate-Group", "h"},
                                        {"Impersonate-Extra-acme.com%2Fx%20y", "v"},
                                        {"Authorization", "Bearer t"}});
}

TEST_CASE("certificates and keys are read again for each connection") {
  const TokenFolder folder;
  folder.write("ca.crt", kCertificate);
  folder.write("c.crt", kCertificate + "1");
  folder.write("c.key", kKey);
  const auto access = access_of(folder, "client-certificate: c.crt, client-key: c.key",
                                ", certificate-authority: ca.crt, tls-server-name: other");
  REQUIRE(access);
  auto material = access->credentials->tls({});
  REQUIRE(material);
  CHECK(*material == TlsMaterial{kCertificate, kCertificate + "1", kKey, "other", false});
  folder.write("c.crt", kCertificate + "2");
  CHECK(access->credentials->tls({})->client_cert_pem == kCertificate + "2");
  folder.write("ca.crt", "hello");
  CHECK(access->credentials->tls({}).error().message ==
        folder.path("ca.crt") + ": no PEM block of a CERTIFICATE; give a PEM file");
  std::filesystem::remove(folder.path("ca.crt"));
  CHECK(access->credentials->tls({}).error().message.contains("certificate-authority of cluster 'c'"));
}

TEST_CASE("an exec plugin runs once, and again after a 401") {
  const TokenFolder folder;
  const std::string runs = folder.path("runs");
  folder.write_program("plugin",
                       "echo x >> " + runs + "\nn=$(wc -l < " + runs + ")\n" + printing(R"({"token":"tok$n"})"));
  const auto access = access_of(folder, exec_user());
  REQUIRE(access);
  CHECK(authorization(*access->credentials) == "Bearer tok1");
  CHECK(authorization(*access->credentials) == "Bearer tok1");
  CHECK(access->credentials->tls({})->client_cert_pem.empty());
  access->credentials->unauthorized();
  CHECK(authorization(*access->credentials) == "Bearer tok2");
  CHECK(authorization(*access->credentials) == "Bearer tok2");
}

TEST_CASE("who waits for another's run of the plugin leaves when told to stop") {
  const TokenFolder folder;
  folder.write_program("plugin", "echo x >> " + folder.path("runs") + "\nexec sleep 600\n");
  const auto access = access_of(folder, exec_user());
  REQUIRE(access);
  std::jthread first([&](const std::stop_token& stop) { (void)access->credentials->headers(stop); });
  REQUIRE(dhc::test::eventually([&] { return read_file(folder.path("runs")).value_or("") == "x\n"; }));
  std::stop_source stop;
  std::jthread soon([&] { stop.request_stop(); });
  const auto headers = access->credentials->headers(stop.get_token());
  REQUIRE_FALSE(headers);
  CHECK(headers.error().kind == dhc::ErrorKind::Cancelled);
  CHECK(read_file(folder.path("runs")) == "x\n");
}

TEST_CASE("a plugin whose credential comes expired by our clock runs no more often than others") {
  const TokenFolder folder;
  folder.write_program("plugin", "echo x >> " + folder.path("runs") + "\n" +
                                     printing(R"({"token":"tok","expirationTimestamp":"2020-01-01T00:00:00Z"})"));
  auto around = nowhere();
  around.exec.rest = std::chrono::hours(1);
  const auto access =
      default_access({.kubeconfig = folder.write("config", kubeconfig(exec_user())), .context = ""}, around);
  REQUIRE(access);
  for (int call = 0; call < 20; ++call) {
    CHECK(authorization(*access->credentials) == "Bearer tok");
    CHECK(access->credentials->tls({}).has_value());
  }
  access->credentials->unauthorized();
  CHECK(authorization(*access->credentials) == "Bearer tok");
  CHECK(read_file(folder.path("runs")) == "x\n");
}

TEST_CASE("a plugin's expired credential is renewed, and may be a client certificate") {
  const TokenFolder folder;
  folder.write_program("plugin",
                       "echo x >> " + folder.path("runs") + "\n" +
                           printing(R"({"clientCertificateData":"-----BEGIN CERTIFICATE-----","clientKeyData":"k",)"
                                    R"("expirationTimestamp":"2020-01-01T00:00:00Z"})"));
  const auto access = access_of(folder, exec_user());
  REQUIRE(access);
  CHECK(access->credentials->tls({})->client_key_pem == "k");
  CHECK(authorization(*access->credentials) == "none");
  CHECK(read_file(folder.path("runs")) == "x\nx\n");
}

TEST_CASE("a plugin sees its arguments, its variables and what it is asked, and inherits nothing else") {
  const TokenFolder folder;
  folder.write("ca.crt", kCertificate);
  folder.write_program("plugin", "printf '%s|%s|%s' \"$1\" \"$OWN\" \"$KUBERNETES_EXEC_INFO\" > " +
                                     folder.path("seen") + "\nls /proc/self/fd | tr '\\n' ' ' > " +
                                     folder.path("open") + "\n" + printing(R"({"token":"t"})"));
  const auto access =
      access_of(folder, exec_user(", args: ['a b; exit 1'], env: [{name: OWN, value: v}], provideClusterInfo: true"),
                ", certificate-authority: ca.crt");
  REQUIRE(access);
  CHECK(authorization(*access->credentials) == "Bearer t");
  const std::string seen = read_file(folder.path("seen")).value_or("");
  CHECK(seen.starts_with("a b; exit 1|v|{"));
  CHECK(seen.contains(R"("server":"https://api.example:6443")"));
  CHECK(seen.contains("certificate-authority-data"));
  // 3 is ls's own look at the folder.
  CHECK(read_file(folder.path("open")) == "0 1 2 3 ");
}

TEST_CASE("a plugin that fails, hangs, floods or is missing is one clear error") {
  const TokenFolder folder;
  const auto said = [&](const std::string& user) {
    auto around = nowhere();
    around.exec.timeout = Millis(300);
    const auto access = default_access({.kubeconfig = folder.write("config", kubeconfig(user)), .context = ""}, around);
    return authorization(*access->credentials);
  };
  folder.write_program("plugin", "exit 3\n");
  CHECK(said(exec_user()).contains("./plugin: ended with exit code 3"));
  folder.write_program("plugin", "kill -9 $$\n");
  CHECK(said(exec_user()).contains("was ended by signal 9"));
  folder.write_program("plugin", "exec cat /dev/zero\n");
  CHECK(said(exec_user()).contains("printed more than 1048576 bytes"));
  folder.write_program("plugin", "echo hunter2\n");
  CHECK(said(exec_user()).contains("printed something that is not a JSON object"));
  CHECK_FALSE(said(exec_user()).contains("hunter2"));
  folder.write_program("plugin", "sleep 100 & sleep 100\n");
  const auto start = std::chrono::steady_clock::now();
  CHECK(said(exec_user()).contains("no answer within 300 ms"));
  CHECK(std::chrono::steady_clock::now() - start < Seconds(10));
  CHECK(
      said(
          "exec: {apiVersion: client.authentication.k8s.io/v1, command: no-such-plugin-at-all, interactiveMode: Never, "
          "installHint: get it there}")
          .contains("No such file or directory; get it there"));
}

TEST_CASE("a running plugin is stopped at once") {
  const TokenFolder folder;
  folder.write_program("plugin", ": > " + folder.path("started") + "\nsleep 100\n");
  const auto access = access_of(folder, exec_user());
  REQUIRE(access);
  std::stop_source stop;
  std::string kind;
  std::jthread asking([&] {
    const auto headers = access->credentials->headers(stop.get_token());
    kind = headers ? "none" : to_string(headers.error().kind);
  });
  while (!std::filesystem::exists(folder.path("started"))) std::this_thread::yield();
  const auto start = std::chrono::steady_clock::now();
  stop.request_stop();
  asking.join();
  CHECK(kind == "Cancelled");
  CHECK(std::chrono::steady_clock::now() - start < Seconds(5));
}

TEST_CASE("an explicit token switches the plugin off") {
  const TokenFolder folder;
  CHECK(authorization(*access_of(folder, "token: t, " + exec_user())->credentials) == "Bearer t");
}

TEST_CASE("the service account of a pod gives server, token, CA and namespace, all read again") {
  const TokenFolder folder;
  auto around = nowhere();
  around.service_account = folder.path("sa");
  around.service_host = "fd00::1";
  around.service_port = "443";
  folder.write("sa/token", "one\n");
  folder.write("sa/ca.crt", kCertificate);
  folder.write("sa/namespace", "system\n");
  const auto access = default_access({}, around);
  REQUIRE(access);
  CHECK(access->endpoint == Endpoint{true, "fd00::1", 443, ""});
  CHECK(access->ns == "system");
  CHECK(access->in_cluster);
  CHECK(authorization(*access->credentials) == "Bearer one");
  CHECK(access->credentials->tls({})->ca_pem == kCertificate);
  folder.write("sa/token", "two");
  folder.write("sa/ca.crt", kCertificate + kCertificate);
  CHECK(authorization(*access->credentials) == "Bearer two");
  CHECK(access->credentials->tls({})->ca_pem == kCertificate + kCertificate);
}

TEST_CASE("the flag comes before KUBECONFIG, that before the service account, that before the home folder") {
  const TokenFolder folder;
  auto around = nowhere();
  around.home = folder.path("home");
  const std::string config = kubeconfig("token: t");
  CHECK(default_access({}, around).error().message ==
        "no cluster is configured; tried the service account of a pod (KUBERNETES_SERVICE_HOST is not set), " +
            folder.path("home/.kube/config") + " (no such file); give --kubeconfig FILE");
  folder.write("home/.kube/config", config);
  CHECK(default_access({}, around)->origin == "context 'x'");
  around.service_account = folder.path("sa");
  around.service_host = "10.0.0.1";
  around.service_port = "443";
  CHECK(default_access({}, around)->origin == "context 'x'");
  folder.write("sa/token", "one");
  CHECK(default_access({}, around)->origin == "service account of this pod");
  CHECK(default_access({.kubeconfig = "", .context = "x"}, around)->origin == "context 'x'");
  around.kubeconfig = folder.path("absent") + "::" + folder.write("listed", config);
  CHECK(default_access({}, around)->origin == "context 'x'");
  around.kubeconfig = folder.path("absent");
  CHECK(default_access({}, around).error().message ==
        "no cluster is configured; tried KUBECONFIG=" + folder.path("absent") +
            " (no such file); give --kubeconfig FILE");
  CHECK(default_access({.kubeconfig = folder.path("gone"), .context = ""}, around).error().message ==
        "kubeconfig " + folder.path("gone") + ": No such file or directory; correct the path or its permissions");
  CHECK(default_access({.kubeconfig = folder.path("home"), .context = ""}, around)
            .error()
            .message.contains("Is a directory"));
}

TEST_CASE("a proxy for that host is refused, and NO_PROXY lifts it") {
  const TokenFolder folder;
  auto around = nowhere();
  const AccessFlags flags{.kubeconfig = folder.write("config", kubeconfig("token: t")), .context = ""};
  around.proxy.http_proxy = "http://proxy";
  CHECK(default_access(flags, around).has_value());
  around.proxy.https_proxy = "http://proxy";
  CHECK(default_access(flags, around).error().message ==
        "HTTPS_PROXY is set, but this program does not use proxies; add api.example to NO_PROXY to reach it directly");
  for (const char* exempt : {"*", "example", ".example", "API.example", "x, api.example:6443", "*.example"}) {
    CAPTURE(exempt);
    around.proxy.no_proxy = exempt;
    CHECK(default_access(flags, around).has_value());
  }
  for (const char* other : {"", "ample", "i.example", "api.example:443", "10.0.0.0/8"}) {
    CAPTURE(other);
    around.proxy.no_proxy = other;
    CHECK_FALSE(default_access(flags, around).has_value());
  }
}

TEST_CASE("NO_PROXY knows networks, and loopback is never sent to a proxy") {
  const auto variable = [](const std::string& host, const std::string& no_proxy) {
    return proxy_variable_for(Endpoint{true, host, 443, ""},
                              {.https_proxy = "p", .http_proxy = "", .no_proxy = no_proxy});
  };
  CHECK_FALSE(variable("10.1.2.3", "10.0.0.0/8").has_value());
  CHECK_FALSE(variable("fd00::1", "fd00::/8").has_value());
  CHECK_FALSE(variable("10.1.2.3", "10.1.2.3").has_value());
  CHECK_FALSE(variable("127.0.0.1", "").has_value());
  CHECK_FALSE(variable("::1", "").has_value());
  CHECK(variable("11.1.2.3", "10.0.0.0/8") == "HTTPS_PROXY");
  CHECK(variable("10.1.2.3", "10.0.0.0/33") == "HTTPS_PROXY");
  CHECK(variable("10.1.2.3", "fd00::/8") == "HTTPS_PROXY");
}

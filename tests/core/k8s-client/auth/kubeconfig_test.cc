#include "k8s-client/auth/kubeconfig.h"

#include <string>

#include <doctest/doctest.h>

using namespace dhc;
using namespace dhc::k8s;

namespace {

const std::string kPlain = R"(apiVersion: v1
kind: Config
current-context: here
clusters:
- name: c
  cluster:
    server: https://api.example:6443/k8s/clusters/c-1/
    certificate-authority: pki/ca.crt
users:
- name: u
  user:
    client-certificate-data: Q0VSVA==
    client-certificate: ignored.crt
    client-key: /etc/key.pem
    tokenFile: token
contexts:
- name: here
  context: {cluster: c, user: u, namespace: team}
)";

/// What choosing the current context of this text says.
std::string mistake(const std::string& text, std::string_view context = "") {
  const auto config = parse_kubeconfig("/home/me/config", text);
  if (!config) return config.error().message;
  const auto chosen = choose_context(*config, context);
  return chosen ? "" : chosen.error().message;
}

/// A whole kubeconfig around the body of one cluster and one user.
std::string with(const std::string& cluster, const std::string& user) {
  return "current-context: x\ncontexts: [{name: x, context: {cluster: c, user: u}}]\nclusters:\n- name: c\n  cluster: "
         "{" +
         cluster + "}\nusers:\n- name: u\n  user: {" + user + "}\n";
}

const std::string kServer = "server: 'https://h'";

}  // namespace

TEST_CASE("a kubeconfig gives its context, and relative paths are resolved by its folder") {
  const auto config = parse_kubeconfig("/home/me/.kube/config", kPlain);
  REQUIRE(config);
  const auto chosen = choose_context(*config, "");
  REQUIRE(chosen);
  CHECK(chosen->name == "here");
  CHECK(chosen->ns == "team");
  CHECK(chosen->cluster.ca.file == "/home/me/.kube/pki/ca.crt");
  CHECK(chosen->user.client_certificate.data == "CERT");
  CHECK(chosen->user.client_certificate.file.empty());
  CHECK(chosen->user.client_key.file == "/etc/key.pem");
  CHECK(chosen->user.token_file == "/home/me/.kube/token");
}

TEST_CASE("a kubeconfig in JSON reads the same") {
  const auto config = parse_kubeconfig("k.json", R"({"kind": "Config", "apiVersion": "v1", "current-context": "here",
	"clusters": [{"name": "c", "cluster": {"server": "https:\/\/h", "insecure-skip-tls-verify": true}}],
	"users": [{"name": "u", "user": {"token": "t", "as": "bob", "as-groups": ["g"], "as-user-extra": {"k": ["v"]}}}],
	"contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}], "preferences": {}})");
  REQUIRE(config);
  const auto chosen = choose_context(*config, "here");
  REQUIRE(chosen);
  CHECK(chosen->cluster.server == "https://h");
  CHECK(chosen->cluster.insecure_skip_tls_verify);
  CHECK(chosen->ns == "default");
  CHECK(chosen->user.impersonate == "bob");
  REQUIRE(chosen->user.impersonate_extra.size() == 1);
  CHECK(chosen->user.impersonate_extra[0].second == std::vector<std::string>{"v"});
}

TEST_CASE("when files are merged, the first wins for each name and for the current context") {
  const auto parse = [](const std::string& file, const std::string& text) { return *parse_kubeconfig(file, text); };
  const Kubeconfig merged = merge_kubeconfigs(
      {parse("/a/one", "clusters: [{name: c, cluster: {server: 'https://one', certificate-authority: ca}}]\n"),
       parse("/b/two",
             "current-context: x\nclusters: [{name: c, cluster: {server: 'https://two'}}]\n"
             "contexts: [{name: x, context: {cluster: c, user: u}}]\n"),
       parse("/c/three", "current-context: y\nusers: [{name: u, user: {token: t, tokenFile: tok}}]\n")});
  const auto chosen = choose_context(merged, "");
  REQUIRE(chosen);
  CHECK(chosen->name == "x");
  CHECK(chosen->cluster.server == "https://one");
  CHECK(chosen->cluster.ca.file == "/a/ca");
  CHECK(chosen->user.token_file == "/c/tok");
}

namespace {
const std::string kTwo =
    "current-context: x\n"
    "contexts: [{name: x, context: {cluster: c, user: u, namespace: team}}]\n"
    "clusters:\n- {name: c, cluster: {server: 'https://c', tls-server-name: inner, certificate-authority: /c.crt}}\n"
    "- {name: d, cluster: {server: 'https://d'}}\n"
    "users: [{name: u, user: {token: t}}, {name: v, user: {token: other}}]\n";

Result<ChosenContext> overridden(const std::string& text, const ContextOverrides& overrides,
                                 std::string_view context = "") {
  return choose_context(*parse_kubeconfig("/home/me/config", text), context, overrides);
}
}  // namespace

TEST_CASE("cluster, user and server of the command line stand in the place of the context's") {
  const auto cluster = overridden(kTwo, {.cluster = "d", .user = {}, .server = {}});
  REQUIRE(cluster);
  CHECK(cluster->cluster.server == "https://d");
  CHECK(cluster->user.token == "t");
  CHECK(cluster->ns == "team");
  const auto user = overridden(kTwo, {.cluster = {}, .user = "v", .server = {}});
  REQUIRE(user);
  CHECK(user->cluster.server == "https://c");
  CHECK(user->cluster.tls_server_name == "inner");
  CHECK(user->user.token == "other");
  // The name was the old server's; its authority stays.
  const auto server = overridden(kTwo, {.cluster = {}, .user = {}, .server = "https://elsewhere:6443"});
  REQUIRE(server);
  CHECK(server->cluster.server == "https://elsewhere:6443");
  CHECK(server->cluster.tls_server_name.empty());
  CHECK(server->cluster.ca.file == "/c.crt");
  CHECK(server->user.token == "t");
}

TEST_CASE("credentials and trust of the command line stand in the place of the file's") {
  const std::string by_plugin =
      "contexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x\n"
      "clusters: [{name: c, cluster: {server: 'https://c', tls-server-name: inner, certificate-authority-data: "
      "QQ==}}]\n"
      "users: [{name: u, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: get, interactiveMode: "
      "Never}}}]\n";
  const auto token = overridden(by_plugin, {.cluster = {}, .user = {}, .server = {}, .token = "mine"});
  REQUIRE(token);
  CHECK(token->user.token == "mine");
  CHECK_FALSE(token->user.exec);
  const auto basic = overridden(
      "clusters: [{name: c, cluster: {server: 'https://c'}}]\n"
      "users: [{name: u, user: {username: a, password: b}}]\n",
      {.cluster = "c", .user = "u", .server = {}, .token = "mine"});
  REQUIRE(basic);
  CHECK(basic->user.username.empty());
  const auto key = overridden(by_plugin, {.cluster = {},
                                          .user = {},
                                          .server = {},
                                          .client_certificate = "me.crt",
                                          .client_key = "me.key",
                                          .ca = "other.crt",
                                          .tls_server_name = "outer"});
  REQUIRE(key);
  CHECK(key->user.client_certificate.file == "me.crt");
  CHECK(key->user.client_key.file == "me.key");
  CHECK(key->cluster.ca.file == "other.crt");
  CHECK(key->cluster.ca.data.empty());
  CHECK(key->cluster.tls_server_name == "outer");
  ContextOverrides careless;
  careless.insecure_skip_tls_verify = true;
  const auto unchecked = overridden(by_plugin, careless);
  REQUIRE(unchecked);
  CHECK(unchecked->cluster.insecure_skip_tls_verify);
  CHECK(unchecked->cluster.ca.empty());
  careless.ca = "other.crt";
  CHECK(overridden(by_plugin, careless).error().message.contains("together with a certificate authority"));
  ContextOverrides half;
  half.client_key = "me.key";
  CHECK(overridden(by_plugin, half).error().message.contains("a client certificate needs a client key"));
}

TEST_CASE("with a cluster or server of the command line no context is needed, and nobody's credentials are sent") {
  const std::string bare = kTwo.substr(kTwo.find("clusters:"));
  const auto cluster = overridden(bare, {.cluster = "d", .user = "v", .server = {}});
  REQUIRE(cluster);
  CHECK(cluster->cluster.server == "https://d");
  CHECK(cluster->user.token == "other");
  CHECK(cluster->ns == "default");
  const auto proxied = overridden("{}", {.cluster = {}, .user = {}, .server = "http://127.0.0.1:8001"});
  REQUIRE(proxied);
  CHECK(proxied->user.token.empty());
  CHECK_FALSE(overridden(bare, {.cluster = {}, .user = "v", .server = {}}));
}

TEST_CASE("a cluster, user or context that the command line names and no file has is told with those that there are") {
  const auto words = [](const ContextOverrides& overrides, std::string_view context = "") {
    const auto chosen = overridden(kTwo, overrides, context);
    return chosen ? std::string() : chosen.error().message;
  };
  CHECK(words({.cluster = "e", .user = {}, .server = {}}) ==
        "kubeconfig: no cluster 'e'; name one with --cluster (there are: c, d)");
  CHECK(words({.cluster = {}, .user = "w", .server = {}}) ==
        "kubeconfig: no user 'w'; name one with --user (there are: u, v)");
  CHECK(words({.cluster = "d", .user = {}, .server = {}}, "y") ==
        "kubeconfig: no context 'y'; name one with --context (there are: x)");
  CHECK(words({.cluster = {}, .user = {}, .server = "http://elsewhere"}).contains("would travel unencrypted"));
  CHECK(words({.cluster = {}, .user = {}, .server = "elsewhere"}).contains("cluster 'c'"));
}

TEST_CASE("an anchor in the wild is followed") {
  CHECK(mistake("current-context: x\ncontexts: [{name: x, context: {cluster: c, user: u}}]\nclusters:\n"
                "- name: b\n  cluster: &b {server: 'https://h'}\n- name: c\n  cluster: *b\nusers: [{name: u}]\n") ==
        "");
}

TEST_CASE("mistakes in a kubeconfig name file, line and remedy") {
  CHECK(mistake("a: [") ==
        "kubeconfig /home/me/config:1: not YAML: end of sequence flow not found; check the indentation, quotes and "
        "brackets before this place");
  CHECK(mistake("- a\n") == "kubeconfig /home/me/config:1: is not a kubeconfig: its top is no map");
  CHECK(mistake("kind: Pod\napiVersion: v1\n") ==
        "kubeconfig /home/me/config:1: is v1 Pod, not a kubeconfig (v1 Config); give another file");
  CHECK(mistake("users: []\nusers: []\n") == "kubeconfig /home/me/config:2: key 'users' is a duplicate; remove one");
  CHECK(mistake("users:\n- {name: u}\n- {name: u}\n") ==
        "kubeconfig /home/me/config:3: user 'u' is a duplicate in 'users'; remove one");
  CHECK(mistake("clusters:\n- name: c\n  cluster:\n    certificate-authority-data: '*'\n") ==
        "kubeconfig /home/me/config:4: 'certificate-authority-data' is not base64; encode the PEM file with base64");
  CHECK(mistake("users:\n- name: u\n  user: {as-groups: g}\n") ==
        "kubeconfig /home/me/config:3: 'as-groups' is no list");
  CHECK(mistake("a: 1\n---\nb: 2\n").starts_with("kubeconfig /home/me/config:3: a second YAML document"));
  CHECK(mistake("") == "kubeconfig: no current-context; name one with --context (there are: none)");
}

TEST_CASE("a context that leads nowhere says what there is") {
  CHECK(mistake(kPlain, "other") == "kubeconfig: no context 'other'; name one with --context (there are: here)");
  CHECK(mistake("current-context: gone\n") ==
        "kubeconfig /home/me/config:1: no context 'gone'; name one with --context (there are: none)");
  CHECK(mistake("current-context: x\ncontexts:\n- name: x\n  context: {cluster: c, user: u}\n") ==
        "kubeconfig /home/me/config:3: context 'x' names cluster 'c', which is in no file; add it or choose another "
        "context");
  CHECK(mistake("current-context: x\ncontexts:\n- name: x\n  context: {cluster: c, user: u}\nclusters:\n- name: c\n") ==
        "kubeconfig /home/me/config:3: context 'x' names user 'u', which is in no file; add it or choose another "
        "context");
}

TEST_CASE("what is not supported or contradicts itself is refused with the remedy") {
  const auto says = [](const std::string& text, const std::string& part) {
    const std::string message = mistake(text);
    CAPTURE(message);
    CHECK(message.contains(part));
    CHECK(message.starts_with("kubeconfig /home/me/config:"));
  };
  says(with("a: b", ""), "no server; write server: https://HOST:PORT");
  says(with("server: 'api:6443'", ""), "does not begin with https://");
  says(with(kServer + ", insecure-skip-tls-verify: true, certificate-authority: ca", ""), "remove one of them");
  says(with(kServer + ", proxy-url: 'http://p'", ""), "proxy-url is not supported by this program");
  says(with(kServer, "auth-provider: {name: gcp}"),
       "auth-provider was removed from Kubernetes; use the provider's exec plugin");
  says(with(kServer, "token: t, username: n"), "both a token and a username");
  says(with(kServer, "client-certificate: c"), "needs a client key");
  says(with(kServer, "as-groups: [g]"), "say whom to impersonate");
  says(with(kServer, "exec: {apiVersion: client.authentication.k8s.io/v1, command: p, interactiveMode: Always}"),
       "interactiveMode Always needs a person");
  says(with(kServer, "exec: {apiVersion: client.authentication.k8s.io/v1, command: p}"), "write Never or IfAvailable");
  says(with(kServer, "exec: {apiVersion: client.authentication.k8s.io/v1alpha1, command: p}"),
       "is not supported; update the plugin");
  says(with(kServer, "exec: {apiVersion: client.authentication.k8s.io/v1beta1}"), "no command");
  says(with("server: 'http://api.example'", "token: t"), "would travel unencrypted");
  CHECK(mistake(with("server: 'http://127.0.0.1:8001'", "token: t")) == "");
  CHECK(mistake(with("server: 'http://api.example'", "")) == "");
}

TEST_CASE("a secret never stands in a mistake") {
  for (const std::string user : {"token: hunter2, username: n", "password: hunter2, username: 'a:b'",
                                 "client-key-data: 'hunter2!'", "token: [hunter2]"}) {
    const std::string message = mistake(with(kServer, user));
    CHECK_FALSE(message.empty());
    CHECK_FALSE(message.contains("hunter2"));
  }
}

#include "k8s-client/auth/kubeconfig.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json_read.h"
#include "base/yaml_tree.h"
#include "k8s-client/auth/base64.h"

namespace dhc::k8s {

namespace {

/// The first mistake of a file; never leaves this file.
struct Refused {
  int line;
  std::string message;
};

std::string under(std::string_view file, std::string path) {
  if (path.empty() || path.starts_with('/')) return path;
  const std::size_t slash = file.rfind('/');
  if (slash == std::string_view::npos) return path;
  return std::string(file.substr(0, slash + 1)) + path;
}

/// Any JSON value of a tree, for an exec plugin's `config`, which is opaque to us.
nlohmann::json to_json(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::Null:
      return nullptr;
    case YamlNode::Kind::Scalar: {
      if (node.quoted || plain_type(node.text) == PlainType::String) return node.text;
      nlohmann::json value = read_json<nlohmann::json>(node.text);
      if (value.is_primitive() && !value.is_discarded()) return value;
      return node.text;
    }
    case YamlNode::Kind::Sequence: {
      nlohmann::json list = nlohmann::json::array();
      for (const YamlNode& item : node.items) list.push_back(to_json(item));
      return list;
    }
    case YamlNode::Kind::Map: {
      nlohmann::json object = nlohmann::json::object();
      for (std::size_t i = 0; i + 1 < node.items.size(); i += 2)
        object[node.items[i].text] = to_json(node.items[i + 1]);
      return object;
    }
  }
  return nullptr;
}

/// Reads fields of one file's tree; throws Refused at the first that does not fit.
class Reader {
 public:
  explicit Reader(std::string_view file) : file_(file) {}

  [[nodiscard]] Kubeconfig config(const YamlNode& root) const {
    Kubeconfig config;
    if (root.kind == YamlNode::Kind::Null) return config;
    if (root.kind != YamlNode::Kind::Map) throw Refused{root.place.line, "is not a kubeconfig: its top is no map"};
    unique_keys(root);
    check_header(root);
    config.current_context = text(root, "current-context");
    if (const YamlNode* node = root.find("current-context")) config.current_context_place = place(*node);
    named(root, "clusters", "cluster", config.clusters, [&](const YamlNode& n, KubeCluster& c) { read(n, c); });
    named(root, "users", "user", config.users, [&](const YamlNode& n, KubeUser& u) { read(n, u); });
    named(root, "contexts", "context", config.contexts, [&](const YamlNode& n, KubeContext& c) { read(n, c); });
    return config;
  }

 private:
  static const YamlNode* given(const YamlNode& map, std::string_view key) {
    const YamlNode* node = map.find(key);
    return node == nullptr || node->kind == YamlNode::Kind::Null ? nullptr : node;
  }
  [[nodiscard]] KubeconfigPlace place(const YamlNode& node) const { return {std::string(file_), node.place.line}; }

  static void unique_keys(const YamlNode& map) {
    std::set<std::string_view> seen;
    for (std::size_t i = 0; i + 1 < map.items.size(); i += 2) {
      const YamlNode& key = map.items[i];
      if (key.kind == YamlNode::Kind::Scalar && !seen.insert(key.text).second) {
        throw Refused{key.place.line, fmt::format("key '{}' is a duplicate; remove one", key.text)};
      }
      if (key.text == "<<" && !key.quoted) {
        throw Refused{key.place.line, "the merge key '<<' is not supported; write the keys out"};
      }
    }
  }
  static void check_header(const YamlNode& root) {
    const std::string kind = text(root, "kind");
    const std::string version = text(root, "apiVersion");
    if ((!kind.empty() && kind != "Config") || (!version.empty() && version != "v1")) {
      throw Refused{root.place.line, fmt::format("is {} {}, not a kubeconfig (v1 Config); give another file",
                                                 version.empty() ? "v1" : version, kind.empty() ? "Config" : kind)};
    }
  }
  static std::string text(const YamlNode& map, std::string_view key) {
    const YamlNode* node = given(map, key);
    if (node == nullptr) return {};
    if (node->kind != YamlNode::Kind::Scalar) {
      throw Refused{node->place.line, fmt::format("'{}' is no string; write one value", key)};
    }
    return node->text;
  }
  static bool flag(const YamlNode& map, std::string_view key) {
    const std::string word = text(map, key);
    if (word.empty() || word == "false") return false;
    if (word == "true") return true;
    throw Refused{map.find(key)->place.line, fmt::format("'{}' is neither true nor false", key)};
  }
  static std::vector<std::string> texts(const YamlNode& map, std::string_view key) {
    std::vector<std::string> values;
    const YamlNode* node = given(map, key);
    if (node == nullptr) return values;
    if (node->kind != YamlNode::Kind::Sequence) throw Refused{node->place.line, fmt::format("'{}' is no list", key)};
    for (const YamlNode& item : node->items) {
      if (item.kind != YamlNode::Kind::Scalar) {
        throw Refused{item.place.line, fmt::format("an item of '{}' is no string", key)};
      }
      values.push_back(item.text);
    }
    return values;
  }
  [[nodiscard]] InlineOrFile material(const YamlNode& map, const std::string& key) const {
    InlineOrFile material;
    material.file = under(file_, text(map, key));
    const std::string encoded = text(map, key + "-data");
    if (encoded.empty()) return material;
    auto bytes = base64_decode(encoded);
    if (!bytes) {
      throw Refused{map.find(key + "-data")->place.line,
                    fmt::format("'{}-data' is not base64; encode the PEM file with base64", key)};
    }
    material.data = *std::move(bytes);
    material.file.clear();
    return material;
  }

  /// A list of {name, <inner>}.
  template <class T, class Read>
  void named(const YamlNode& root, std::string_view list, std::string_view inner, std::vector<T>& into,
             Read read_inner) const {
    const YamlNode* node = given(root, list);
    if (node == nullptr) return;
    if (node->kind != YamlNode::Kind::Sequence) throw Refused{node->place.line, fmt::format("'{}' is no list", list)};
    std::set<std::string> names;
    for (const YamlNode& item : node->items) {
      if (item.kind != YamlNode::Kind::Map) {
        throw Refused{item.place.line, fmt::format("an item of '{}' is no map of name and {}", list, inner)};
      }
      unique_keys(item);
      T value;
      value.name = text(item, "name");
      value.place = place(item);
      // kubectl lets the last of two equal names win; which one was meant is a guess we do not make.
      if (!names.insert(value.name).second) {
        throw Refused{item.place.line,
                      fmt::format("{} '{}' is a duplicate in '{}'; remove one", inner, value.name, list)};
      }
      if (const YamlNode* body = given(item, inner)) {
        if (body->kind != YamlNode::Kind::Map) throw Refused{body->place.line, fmt::format("'{}' is no map", inner)};
        unique_keys(*body);
        read_inner(*body, value);
      }
      into.push_back(std::move(value));
    }
  }

  void read(const YamlNode& node, KubeCluster& cluster) const {
    cluster.server = text(node, "server");
    cluster.ca = material(node, "certificate-authority");
    cluster.insecure_skip_tls_verify = flag(node, "insecure-skip-tls-verify");
    cluster.tls_server_name = text(node, "tls-server-name");
    cluster.proxy_url = text(node, "proxy-url");
    const YamlNode* extensions = given(node, "extensions");
    if (extensions == nullptr || extensions->kind != YamlNode::Kind::Sequence) return;
    for (const YamlNode& item : extensions->items) {
      const YamlNode* value = item.find("extension");
      if (value != nullptr && item.find("name") != nullptr &&
          item.find("name")->text == "client.authentication.k8s.io/exec") {
        cluster.exec_config_json = to_json(*value).dump();
      }
    }
  }

  void read(const YamlNode& node, KubeUser& user) const {
    user.client_certificate = material(node, "client-certificate");
    user.client_key = material(node, "client-key");
    user.token = text(node, "token");
    user.token_file = under(file_, text(node, "tokenFile"));
    user.username = text(node, "username");
    user.password = text(node, "password");
    user.auth_provider = given(node, "auth-provider") != nullptr;
    user.impersonate = text(node, "as");
    user.impersonate_uid = text(node, "as-uid");
    user.impersonate_groups = texts(node, "as-groups");
    if (const YamlNode* extra = given(node, "as-user-extra")) {
      if (extra->kind != YamlNode::Kind::Map) throw Refused{extra->place.line, "'as-user-extra' is no map"};
      unique_keys(*extra);
      for (std::size_t i = 0; i + 1 < extra->items.size(); i += 2) {
        const std::string& key = extra->items[i].text;
        user.impersonate_extra.emplace_back(key, texts(*extra, key));
      }
    }
    if (const YamlNode* exec = given(node, "exec")) {
      if (exec->kind != YamlNode::Kind::Map) throw Refused{exec->place.line, "'exec' is no map"};
      user.exec = read_exec(*exec);
    }
  }

  [[nodiscard]] KubeExec read_exec(const YamlNode& node) const {
    unique_keys(node);
    KubeExec exec;
    exec.place = place(node);
    exec.api_version = text(node, "apiVersion");
    exec.command = text(node, "command");
    // Like Go's exec: only a command with a slash is a path, and that one is the kubeconfig's neighbour.
    if (exec.command.contains('/')) exec.command = under(file_, exec.command);
    exec.args = texts(node, "args");
    exec.install_hint = text(node, "installHint");
    exec.interactive_mode = text(node, "interactiveMode");
    exec.provide_cluster_info = flag(node, "provideClusterInfo");
    const YamlNode* env = given(node, "env");
    if (env == nullptr) return exec;
    if (env->kind != YamlNode::Kind::Sequence) throw Refused{env->place.line, "'env' is no list"};
    for (const YamlNode& item : env->items) {
      const std::string name = item.kind == YamlNode::Kind::Map ? text(item, "name") : "";
      if (name.empty() || name.contains('=')) {
        throw Refused{item.place.line, "an item of 'env' has no usable name; write {name: ..., value: ...}"};
      }
      exec.env.emplace_back(name, text(item, "value"));
    }
    return exec;
  }

  void read(const YamlNode& node, KubeContext& context) const {
    context.cluster = text(node, "cluster");
    context.user = text(node, "user");
    context.ns = text(node, "namespace");
  }

  std::string_view file_;
};

}  // namespace

std::string to_string(const KubeconfigPlace& place) { return fmt::format("{}:{}", place.file, place.line); }

Result<Kubeconfig> parse_kubeconfig(std::string_view file, std::string_view text) {
  const YamlBounds bounds{
      .bytes = std::size_t{16} << 20, .nodes = 1'000'000, .depth = 64, .marks = 3'000'000, .aliases = true};
  const auto documents = read_yaml(text, bounds);
  if (!documents) {
    const YamlMistake& mistake = documents.error();
    return fail(ErrorKind::Invalid,
                fmt::format("kubeconfig {}:{}: {}; {}", file, mistake.place.line, mistake.message, mistake.remedy));
  }
  if (documents->size() > 1) {
    return fail(
        ErrorKind::Invalid,
        fmt::format("kubeconfig {}:{}: a second YAML document; write one file for each and list them in KUBECONFIG",
                    file, (*documents)[1].place.line));
  }
  try {
    return documents->empty() ? Kubeconfig{} : Reader(file).config(documents->front());
  } catch (const Refused& refused) {
    return fail(ErrorKind::Invalid, fmt::format("kubeconfig {}:{}: {}", file, refused.line, refused.message));
  }
}

Kubeconfig merge_kubeconfigs(std::vector<Kubeconfig> files) {
  Kubeconfig merged;
  const auto take = [](auto& into, auto& from) {
    for (auto& entry : from) {
      const auto same = [&](const auto& known) { return known.name == entry.name; };
      if (std::ranges::none_of(into, same)) into.push_back(std::move(entry));
    }
  };
  for (Kubeconfig& file : files) {
    if (merged.current_context.empty()) {
      merged.current_context = std::move(file.current_context);
      merged.current_context_place = std::move(file.current_context_place);
    }
    take(merged.clusters, file.clusters);
    take(merged.users, file.users);
    take(merged.contexts, file.contexts);
  }
  return merged;
}

}  // namespace dhc::k8s

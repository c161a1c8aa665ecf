// kubectl device-health against a simulated API server with a controller beside it.
#include <algorithm>
#include <array>
#include <csignal>
#include <regex>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/clock.h"
#include "cli/command_line.h"
#include "k8s-client/auth/file.h"
#include "simulator/server.h"
#include "tests/support/shell/loopback.h"
#include "tests/support/shell/program.h"

namespace dhc::test {

namespace {

constexpr const char* kPluginResource = "example.com/gpu";
constexpr const char* kPluginPolicy = R"(apiVersion: device-health.io/v1alpha1
kind: DeviceHealthPolicy
metadata: {name: all}
spec:
  mode: enforce
  match: {}
  after: 1s
  evict: {after: 1h}
)";

/// A node of four devices and two pods, one of which holds a device that breaks, and a controller that tells its status
/// in `default`.
struct PluginCluster {
  sim::Server server{1, read_now};
  Folder folder;
  std::string kubeconfig = folder.path() + "/kubeconfig";
  std::string policy = folder.write("policy.yaml", kPluginPolicy);
  std::string bad;

  PluginCluster() {
    REQUIRE(server.write_kubeconfig(kubeconfig));
    with([](sim::Cluster& cluster) {
      cluster.add_node({"node-a", {{kPluginResource, 4}}, {}, {}});
      sim::PodShape shape;
      shape.resource = kPluginResource;
      cluster.create_deployment("default", "infer", 2, shape);
    });
    REQUIRE(eventually([&] {
      with([&](sim::Cluster& cluster) {
        const auto holders = cluster.holders("node-a", "GPU-0");
        if (!holders.empty()) bad = holders.front();
      });
      return !bad.empty();
    }));
    with([](sim::Cluster& cluster) { cluster.set_device_health("node-a", "GPU-0", "Unhealthy"); });
  }

  void with(const std::function<void(sim::Cluster&)>& work) {
    server.with_cluster([&](sim::Cluster& cluster, const Now&) { work(cluster); });
  }

  std::vector<std::string> arguments(std::vector<std::string> command) const {
    command.insert(command.end(), {"--kubeconfig", kubeconfig, "--controller-namespace", "default"});
    return command;
  }

  std::string annotation(const std::string& node, const std::string& name) {
    std::string value;
    with([&](sim::Cluster& cluster) {
      const auto object = cluster.store().get(sim::Res::Nodes, {.ns = {}, .name = node});
      const auto& metadata = object->at("metadata");
      if (metadata.contains("annotations") && metadata["annotations"].contains(name))
        value = metadata["annotations"][name].get<std::string>();
    });
    return value;
  }
};

cli::Command parsed_line(std::vector<const char*> arguments) { return cli::parse_command_line(arguments); }

/// A controller that has written its status.
struct ToldController {
  explicit ToldController(PluginCluster& world)
      : program({"run", "--kubeconfig", world.kubeconfig, "--config", world.policy, "--metrics-bind-address", "0",
                 "--health-probe-bind-address", "0", "--detail-bind-address", "0"},
                {}, {{"POD_NAMESPACE", "default"}}) {
    REQUIRE(program.await(
        [&] {
          Program devices(world.arguments({"devices"}));
          return devices.ended(Seconds(20)) == 0;
        },
        Seconds(60)));
  }

  Program program;
};

}  // namespace

TEST_CASE("kubectl device-health shows the bad device, explains its pod, and acknowledges its node") {
  PluginCluster world;
  Program controller({"run", "--kubeconfig", world.kubeconfig, "--config", world.policy, "--mode", "enforce",
                      "--metrics-bind-address", "0", "--health-probe-bind-address", "0", "--detail-bind-address", "0"},
                     {}, {{"POD_NAMESPACE", "default"}, {"POD_NAME", "controller-1"}});
  nlohmann::json devices;
  REQUIRE(controller.await(
      [&] {
        Program program(world.arguments({"devices", "-o", "json"}));
        if (program.ended(Seconds(20)) != 0) return false;
        devices = nlohmann::json::parse(program.out());
        return devices["devices"].size() == 1 && devices["devices"][0]["next"]["gate"] == "window" &&
               !devices["devices"][0]["incidentOpenedAt"].is_null();
      },
      Seconds(60)));
  CHECK(devices["devices"][0]["device"] == "node-a/example.com/gpu/GPU-0");
  CHECK(devices["devices"][0]["holder"] == world.bad);
  CHECK(devices["devices"][0]["next"]["reason"] == "WaitingForEvictAfter");
  CHECK(devices["controller"]["writtenBy"] == "controller-1");
  CHECK(devices["controller"]["notes"].empty());

  Program table(world.arguments({"devices"}));
  CHECK(table.ended(Seconds(20)) == 0);
  CHECK(table.out().starts_with("NODE    DEVICE  DRIVER/RESOURCE  HEALTH     SINCE"));
  CHECK(table.err().empty());
  Program yaml(world.arguments({"incidents", "-o", "yaml"}));
  CHECK(yaml.ended(Seconds(20)) == 0);
  CHECK(yaml.out().contains("  state: \"Open\"\n"));
  const auto name = world.bad.substr(world.bad.find('/') + 1);
  Program explained(world.arguments({"explain", "pod", name, "-n", "default"}));
  CHECK(explained.ended(Seconds(20)) == 0);
  CAPTURE(explained.out());
  CHECK(explained.out().contains("held by gate 6 of 29, window, until "));
  Program stranger(world.arguments({"explain", "node", "node-z"}));
  CHECK(stranger.ended(Seconds(20)) == 1);
  CHECK(stranger.err().starts_with("error: nothing is known of node node-z"));

  Program by_rule(world.arguments({"ack", "device", "GPU-0"}));
  CHECK(by_rule.ended(Seconds(20)) == 1);
  CHECK(by_rule.err().contains("kubectl device-health ack node node-a"));
  Program checked(world.arguments({"release-brake", "node", "node-a", "--dry-run"}));
  CHECK(checked.ended(Seconds(20)) == 0);
  CHECK(checked.out().starts_with("dry run, nothing was changed:\nnode node-a: device-health.io/brake-release="));
  Program ack(world.arguments({"ack", "node", "node-a"}));
  REQUIRE(ack.ended(Seconds(20)) == 0);
  CHECK(ack.out().contains("  node-a/example.com/gpu/GPU-0 (opened "));
  CHECK(ack.out().contains(world.annotation("node-a", "device-health.io/acknowledge")));
  CHECK_FALSE(world.annotation("node-a", "device-health.io/acknowledge").empty());
  CHECK(controller.await(
      [&] {
        Program program(world.arguments({"incidents"}));
        return program.ended(Seconds(20)) == 0 && program.out().contains("Acknowledged");
      },
      Seconds(60)));
}

TEST_CASE("a watched view prints what changes, and ends with Ctrl-C as done") {
  PluginCluster world;
  const ToldController controller(world);
  Program watch(world.arguments({"devices", "--watch", "-o", "json"}));
  REQUIRE(watch.await([&] { return watch.out().contains("GPU-0"); }, Seconds(60)));
  world.with([](sim::Cluster& cluster) { cluster.set_device_health("node-a", "GPU-0", "Healthy"); });
  CHECK(watch.await(
      [&] {
        const auto all = watch.out();
        if (all.empty() || all.back() != '\n') return false;
        const auto line = all.substr(all.rfind('\n', all.size() - 2) + 1);
        return nlohmann::json::parse(line)["controller"]["devicesUnhealthy"] == 0;
      },
      Seconds(90)));
  watch.signal(SIGINT);
  CHECK(watch.ended(Seconds(10)) == 0);
}

TEST_CASE("a watched explanation is printed again when it changes, and from before anything is known") {
  PluginCluster world;
  world.with([](sim::Cluster& cluster) { cluster.set_device_health("node-a", "GPU-0", "Healthy"); });
  const ToldController controller(world);
  Program watch(world.arguments({"explain", "device", "GPU-0", "-w"}));
  REQUIRE(watch.await([&] { return watch.out().contains("nothing is known of device GPU-0"); }, Seconds(60)));
  world.with([](sim::Cluster& cluster) { cluster.set_device_health("node-a", "GPU-0", "Unhealthy"); });
  CHECK(watch.await([&] { return watch.out().contains("WaitingForEvictAfter"); }, Seconds(90)));
  watch.signal(SIGINT);
  CHECK(watch.ended(Seconds(10)) == 0);
  const auto out = watch.out();
  std::size_t nothing = 0;
  for (auto at = out.find("nothing is known"); at != std::string::npos; at = out.find("nothing is known", at + 1))
    ++nothing;
  CHECK(nothing == 1);
  CHECK(std::get<cli::Leave>(parsed_line({"x", "explain", "Paused", "-w"})).err.contains("--watch needs pod"));
}

TEST_CASE("cluster, user, server and request-timeout mean what they mean to kubectl") {
  PluginCluster world;
  const auto broken = world.folder.write(
      "broken", fmt::format("apiVersion: v1\nkind: Config\ncurrent-context: x\n"
                            "contexts: [{{name: x, context: {{cluster: nowhere, user: nobody}}}}]\n"
                            "clusters: [{{name: nowhere, cluster: {{server: 'https://127.0.0.1:1', "
                            "insecure-skip-tls-verify: true}}}}]\nusers: [{{name: nobody, user: {{}}}}]\n"));
  const auto server = fmt::format("https://127.0.0.1:{}", world.server.port());
  // The code for a status that nobody has written: the API server has answered.
  const std::vector<std::string> here = {"devices", "--controller-namespace", "default", "--kubeconfig"};
  const auto with = [&](std::vector<std::string> more) {
    auto all = here;
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  Program unreachable(with({broken, "--request-timeout", "5"}));
  CHECK(unreachable.ended(Seconds(20)) == 1);
  Program moved(with({broken, "--server", server}));
  CHECK(moved.ended(Seconds(20)) == 3);
  Program no_cluster(with({broken, "--cluster", "other"}));
  CHECK(no_cluster.ended(Seconds(20)) == 1);
  CHECK(no_cluster.err().contains("no cluster 'other'; name one with --cluster (there are: nowhere)"));
  Program no_user(with({broken, "--user", "other"}));
  CHECK(no_user.ended(Seconds(20)) == 1);
  CHECK(no_user.err().contains("no user 'other'; name one with --user (there are: nobody)"));
  Program careless(with({"/dev/null", "--server", server, "--insecure-skip-tls-verify", "--token", "mine"}));
  CHECK(careless.ended(Seconds(20)) == 3);
  Program careful(with({"/dev/null", "--server", server, "--token", "mine"}));
  CHECK(careful.ended(Seconds(20)) == 1);
  CHECK(careful.err().contains("certificate"));
  Program nobody(with({world.kubeconfig, "--as-uid", "1"}));
  CHECK(nobody.ended(Seconds(20)) == 1);
  CHECK(nobody.err().contains("--as-uid needs --as"));

  world.with([](sim::Cluster& cluster) {
    sim::Fault slow;
    slow.path_contains = "device-health-status";
    slow.delay = Seconds(8);
    slow.count = -1;
    cluster.faults().add(std::move(slow));
  });
  const auto before = mono_now();
  Program hasty(with({world.kubeconfig, "--request-timeout", "500ms"}));
  CHECK(hasty.ended(Seconds(20)) == 1);
  CHECK(mono_now() - before < Seconds(7));
  CHECK(hasty.err().contains("500 ms"));
  Program patient(with({world.kubeconfig, "--request-timeout=0"}));
  CHECK(patient.ended(Seconds(30)) == 3);

  const auto bad = std::get<cli::Leave>(parsed_line({"x", "devices", "--request-timeout", "soon"}));
  CHECK(bad.code == 2);
  CHECK(bad.err.contains("--request-timeout 'soon' is not a time such as 5s or 1m30s, nor 0"));
}

TEST_CASE("times on the command line are those of the configuration, and a pause may be in days") {
  const auto refusal = [](std::vector<const char*> words) {
    words.insert(words.begin(), "x");
    const auto parsed = parsed_line(words);
    const auto* leave = std::get_if<cli::Leave>(&parsed);
    return leave == nullptr ? std::string() : leave->err;
  };
  for (const auto* time : {"2h30m", "30m", "30d", "720h", "1d"}) CHECK(refusal({"pause", "--for", time}).empty());
  CHECK(
      refusal({"pause", "--for", "721h"}).contains("--for '721h' is not a time such as 30m, 2h30m or 7d: longer than"));
  CHECK(refusal({"pause", "--for", "31d"}).contains("--for '31d' is longer than 30d"));
  CHECK(refusal({"pause", "--for", "0m"}).contains("--for '0m' is no time"));
  CHECK(refusal({"pause", "--for", "1.5h"}).contains("durations have no fractions"));
  CHECK(refusal({"plan", "--within", "1h30m"}).empty());
  CHECK(refusal({"plan", "--within", "25h"}).contains("at most 24h"));
  CHECK(refusal({"demo", "--for", "1m30s"}).empty());
  CHECK(refusal({"demo", "--for", "0s"}).contains("is not a time such as 60s or 1m30s"));
}

TEST_CASE("without a status the reader is told where it was looked for, with a code of its own") {
  PluginCluster world;
  Program program(world.arguments({"devices"}));
  CHECK(program.ended(Seconds(20)) == 3);
  CHECK(program.err().starts_with("error: there is no ConfigMap default/device-health-status: "));
  Program piped(world.arguments({"top"}));
  CHECK(piped.ended(Seconds(20)) == 1);
}

TEST_CASE("a pause is written on the configuration's ConfigMap with its end, and removed again") {
  PluginCluster world;
  world.with([](sim::Cluster& cluster) {
    const sim::Json map = {{"metadata", {{"name", "device-health-controller"}, {"namespace", "default"}}}};
    REQUIRE(cluster.kubectl_create(sim::Res::ConfigMaps, map).status == 201);
  });
  const auto annotations = [&] {
    sim::Json found;
    world.with([&](sim::Cluster& cluster) {
      const auto object =
          cluster.store().get(sim::Res::ConfigMaps, {.ns = "default", .name = "device-health-controller"});
      found = object->at("metadata").value("annotations", sim::Json::object());
    });
    return found;
  };
  Program pause(world.arguments({"pause", "--for", "2h", "--reason", "network change"}));
  REQUIRE(pause.ended(Seconds(20)) == 0);
  CHECK(annotations().size() == 2);
  CHECK(annotations()["device-health.io/pause-reason"] == "network change");
  CHECK(pause.out().contains(annotations()["device-health.io/pause-until"].get<std::string>()));
  Program resume(world.arguments({"resume"}));
  CHECK(resume.ended(Seconds(20)) == 0);
  CHECK(annotations().empty());
  Program part(world.arguments(
      {"pause", "--node", "node-a", "--driver", "gpu.example.com", "--for", "1h", "--reason", "risers"}));
  REQUIRE(part.ended(Seconds(20)) == 0);
  CHECK(annotations().size() == 1);
  CHECK(annotations().items().begin().key().starts_with("device-health.io/pause.node-a.gpu.example.com-"));
  CHECK(annotations().items().begin().value().get<std::string>().starts_with(
      R"({"nodes":["node-a"],"drivers":["gpu.example.com"],)"));
  Program all(world.arguments({"resume"}));
  CHECK(all.ended(Seconds(20)) == 0);
  CHECK(all.out().contains("These pauses of parts stand"));
  CHECK(annotations().size() == 1);
  Program other(world.arguments({"resume", "--node", "node-a"}));
  CHECK(other.ended(Seconds(20)) == 1);
  CHECK(other.err().contains("that part is not paused by one; these stand:"));
  Program same(world.arguments({"resume", "--driver", "gpu.example.com", "--node", "node-a"}));
  CHECK(same.ended(Seconds(20)) == 0);
  CHECK(annotations().empty());
}

TEST_CASE("a support bundle is an archive of what could be read, names what could not, and is never written over") {
  PluginCluster world;
  const auto file = world.folder.path() + "/bundle.tar";
  Program program(world.arguments({"support-bundle", "-f", file}));
  REQUIRE(program.ended(Seconds(30)) == 0);
  const auto bytes = k8s::read_file(file, 1U << 24U);
  REQUIRE(bytes);
  CHECK(bytes->contains("/not-read.txt"));
  CHECK(bytes->contains("status.json: "));
  CHECK(bytes->contains("/nodes.json"));
  Program again(world.arguments({"support-bundle", "-f", file}));
  CHECK(again.ended(Seconds(30)) == 1);
  CHECK(again.err().contains("is it there already?"));
}

TEST_CASE("as kubectl-device_health the program names itself so, and explain takes reasons or a kind and a name") {
  const auto help = std::get<cli::Leave>(parsed_line({"/usr/bin/kubectl-device_health", "--help"}));
  CHECK(help.out.contains("kubectl device-health"));
  CHECK(help.out.contains("incidents"));
  CHECK_FALSE(help.out.contains("uninstall"));
  CHECK(std::get<cli::Leave>(parsed_line({"device-health-controller", "--help"})).out.contains("uninstall"));
  const auto asked = std::get<cli::PluginCommand>(parsed_line({"x", "explain", "pod/train-0", "-n", "ml"}));
  CHECK(std::get<cli::AskOptions>(asked).asked.name == "train-0");
  CHECK(std::get<cli::AskOptions>(asked).asked.ns == "ml");
  CHECK(std::get<cli::ExplainOptions>(parsed_line({"x", "explain", "Paused"})).reasons ==
        std::vector<std::string>{"Paused"});
  CHECK(
      std::get<cli::Leave>(parsed_line({"x", "explain", "pod"})).err.starts_with("error: explain pod needs a name\n"));
  CHECK(std::get<cli::Leave>(parsed_line({"x", "ack", "gpu-0"})).code == 2);
  CHECK(std::get<cli::Leave>(parsed_line({"x", "ack", "jobset", "train"})).err.contains("or 'pod' and a NAME"));
  CHECK(std::get<cli::Leave>(parsed_line({"x", "ack", "node", "a", "-n", "b"})).code == 2);
  const auto ack = std::get<cli::PluginCommand>(parsed_line({"x", "ack", "deployment", "train", "-n", "ml"}));
  CHECK(std::get<cli::OperatorOptions>(ack).kind == "deployment");
  CHECK(std::get<cli::OperatorOptions>(ack).ns == "ml");
  CHECK(std::get<cli::Leave>(parsed_line({"x", "pause"})).code == 2);
  CHECK(std::get<cli::Leave>(parsed_line({"x", "pause", "--for", "31d"})).err.contains("longer than 30d"));
  CHECK(
      std::get<cli::Leave>(parsed_line({"x", "pause", "--for", "1h", "--node", "a"})).err.contains("needs a --reason"));
  CHECK(std::get<cli::Leave>(parsed_line({"x", "resume", "--all", "--node", "a"})).code == 2);
  CHECK(std::get<cli::Leave>(parsed_line({"x", "devices", "-n", "a", "-A"})).code == 2);
  CHECK(
      std::get<cli::CompleteOptions>(parsed_line({"/x/kubectl_complete-device_health", "devices", ""})).words.size() ==
      2);
}

TEST_CASE("completion knows the commands and options as they are defined") {
  Program commands({"__complete", "de"});
  CHECK(commands.ended(Seconds(10)) == 0);
  CHECK(commands.out() ==
        "demo\tRun the controller on a simulated cluster in this process: no cluster needed\n"
        "devices\tList bad devices: who holds them, the next step and when\n:4\n");
  Program formats({"__complete", "devices", "-o", "j"});
  CHECK(formats.ended(Seconds(10)) == 0);
  CHECK(formats.out() == "json\n:4\n");
  Program script({"completion", "bash"});
  CHECK(script.ended(Seconds(10)) == 0);
  CHECK(script.out().starts_with("# bash completion"));
  Program shell({"completion", "tcsh"});
  CHECK(shell.ended(Seconds(10)) == 2);
}

TEST_CASE("the manual page in docs is the one that the program prints") {
  Program program({"man"});
  REQUIRE(program.ended(Seconds(10)) == 0);
  const auto page = k8s::read_file("docs/man/kubectl-device_health.1", 1U << 20U);
  REQUIRE(page);
  CHECK_MESSAGE(*page == program.out(), "run: device-health-controller man > docs/man/kubectl-device_health.1");
}

TEST_CASE("the page about the command line in docs is the one that the program prints") {
  Program program({"man", "--output", "markdown"});
  REQUIRE(program.ended(Seconds(10)) == 0);
  const auto page = k8s::read_file("docs/command-line.md", 1U << 20U);
  REQUIRE(page);
  CHECK_MESSAGE(*page == program.out(), "run: device-health-controller man -o markdown > docs/command-line.md");
}

namespace {

/// The default that an option's text names: `(default WORD)` or `WORD (default)`; empty: none, or none in a word.
std::string default_in(const std::string& about) {
  std::smatch found;
  if (std::regex_search(about, found, std::regex(R"(\(default ([^\s)]+)\))"))) return found[1];
  if (std::regex_search(about, found, std::regex(R"((\S+) \(default\))"))) return found[1];
  return {};
}

/// What the plugin's commands read is another test's.
template <class Kind>
constexpr bool kIsCompared = !std::is_same_v<Kind, cli::PluginCommand> && !std::is_same_v<Kind, cli::CompleteOptions> &&
                             !std::is_same_v<Kind, cli::Leave>;

bool is_same(const cli::Command& a, const cli::Command& b) {
  return std::visit(
      [&b]<class Kind>(const Kind& one) {
        if constexpr (kIsCompared<Kind>) {
          return std::holds_alternative<Kind>(b) && one == std::get<Kind>(b);
        } else {
          return false;
        }
      },
      a);
}

}  // namespace

TEST_CASE("an option whose text names a default does nothing when that is given") {
  int tried = 0;
  for (const auto& command : cli::describe_command_line(cli::kProgramName).commands) {
    std::vector<const char*> line = {"x", command.name.c_str()};
    for (const auto& argument : command.arguments) line.push_back(argument.value.c_str());
    const auto without = cli::parse_command_line(line);
    if (!is_same(without, without)) continue;
    for (const auto& option : command.options) {
      const auto value = default_in(option.about);
      // How long requests may take is said where they are made, and mostly 30 s.
      if (value.empty() || option.names.back() == "--request-timeout") continue;
      CAPTURE(command.name);
      CAPTURE(option.names.back());
      CAPTURE(value);
      auto with = line;
      with.insert(with.end(), {option.names.back().c_str(), value.c_str()});
      CHECK(is_same(cli::parse_command_line(with), without));
      ++tried;
    }
  }
  CHECK(tried > 20);
}

}  // namespace dhc::test

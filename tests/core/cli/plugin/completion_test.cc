#include <algorithm>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "cli/plugin/command_tree.h"

namespace dhc::test {

namespace {

const cli::CommandHelp& program() {
  static const cli::CommandHelp kProgram{
      .name = "kubectl device-health",
      .about = "Reacts",
      .options = {{.names = {"--version"}, .value = {}, .about = "Print the version"}},
      .arguments = {},
      .commands = {{.name = "devices",
                    .about = "List",
                    .options = {{.names = {"-o", "--output"}, .value = "text|wide", .about = "How"},
                                {.names = {"--kubeconfig"}, .value = "FILE", .about = "Which"},
                                {.names = {"--record"}, .value = "DIR", .about = "Where"},
                                {.names = {"-w", "--watch"}, .value = {}, .about = "Go on"}},
                    .arguments = {},
                    .commands = {}},
                   {.name = "ack",
                    .about = "Acknowledge",
                    .options = {{.names = {"-h", "--help"}, .value = {}, .about = "Help"}},
                    .arguments = {{.names = {}, .value = "device|node", .about = "What"}},
                    .commands = {}},
                   {.name = "explain",
                    .about = "Explain",
                    .options = {},
                    .arguments = {{.names = {}, .value = "pod|node", .about = "What"}},
                    .commands = {}}}};
  return kProgram;
}

std::vector<std::string> words_for(const std::vector<std::string>& words) {
  auto candidates = cli::complete(program(), words).candidates;
  for (auto& candidate : candidates) candidate = candidate.substr(0, candidate.find('\t'));
  return candidates;
}

using Words = std::vector<std::string>;

}  // namespace

TEST_CASE("commands, options, and the words of a value are completed") {
  CHECK(words_for({""}) == Words{"ack", "devices", "explain"});
  CHECK(words_for({"de"}) == Words{"devices"});
  CHECK(words_for({"devices", "--"}) == Words{"--kubeconfig", "--output", "--record", "--watch"});
  CHECK(words_for({"devices", "-o", ""}) == Words{"text", "wide"});
  CHECK(words_for({"devices", "-o", "w"}) == Words{"wide"});
  CHECK(words_for({"devices", "-w", ""}) == Words{});
  CHECK(words_for({"ack", ""}) == Words{"device", "node"});
}

TEST_CASE("an option's value is no command, and a file is completed by the shell") {
  CHECK(words_for({"devices", "--kubeconfig", "ack", "--w"}) == Words{"--watch"});
  CHECK(cli::complete(program(), {"devices", "--kubeconfig", ""}).files);
  CHECK(cli::complete(program(), {"devices", "--record", ""}).files);
  CHECK_FALSE(cli::complete(program(), {"devices", ""}).files);
}

TEST_CASE("explain offers kinds and every reason, with what it means") {
  CHECK(words_for({"explain", "p"}) == Words{"pod"});
  const auto reasons = cli::complete(program(), {"explain", "BlockedBy"}).candidates;
  CHECK(reasons == Words{"BlockedByBudget\tA PodDisruptionBudget refuses."});
}

TEST_CASE("kubectl reads a candidate a line, and a last line that says whether files are meant") {
  CHECK(cli::completion_text({.candidates = {"a\tabout", "b"}, .files = false}) == "a\tabout\nb\n:4\n");
  CHECK(cli::completion_text({.candidates = {}, .files = true}) == ":0\n");
}

TEST_CASE("there is a script for each of three shells, and each asks the program") {
  for (const auto* shell : {"bash", "zsh", "fish"}) {
    CAPTURE(shell);
    CHECK(cli::completion_script(shell).find("__complete") != std::string::npos);
  }
  CHECK(cli::completion_script("tcsh").empty());
}

TEST_CASE("the page about the command line has every option once, with its default, and changes with each that comes") {
  auto tree = program();
  const auto page = cli::command_page(tree);
  CHECK(page.contains("\n## devices\n\nList.\n\n| argument or option | meaning |\n|---|---|\n"));
  CHECK(page.contains("\n| `-o, --output text\\|wide` | How |\n"));
  tree.commands[0].options.push_back({.names = {"--planted"}, .value = "a|b", .about = "a (default), b or *"});
  const auto grown = cli::command_page(tree);
  CHECK(grown.contains("\n| `--planted a\\|b` | a (default), b or \\* |\n"));
  CHECK(page != grown);
  tree.commands[0].options.back().about = "a, b (default) or *";
  CHECK(cli::command_page(tree) != grown);
}

TEST_CASE("what three commands have alike is told once, with the commands that have it") {
  const cli::OptionHelp common{.names = {"--context"}, .value = "NAME", .about = "Context"};
  cli::CommandHelp tree{.name = "x", .about = "About"};
  for (const char* name : {"a", "b", "c", "d"})
    tree.commands.push_back({.name = name, .about = "Does", .options = {common}});
  tree.commands[3].options[0].about = "Another context";
  const auto page = cli::command_page(tree);
  CHECK(page.contains("\n| `--context NAME` | Context | `a`, `b`, `c` |\n"));
  CHECK(page.contains(
      "\n## d\n\nDoes.\n\n| argument or option | meaning |\n|---|---|\n| `--context NAME` | Another context |\n"));
  CHECK(page.find("| Context |") == page.rfind("| Context |"));
}

TEST_CASE("the manual page has every command and option, and roff takes no word of them for a request") {
  auto tree = program();
  tree.commands[1].about = ".dangerous - 'words'";
  const auto page = cli::manual_page(tree, "0.1.0");
  CHECK(page.starts_with(".TH KUBECTL\\-DEVICE_HEALTH 1"));
  CHECK(page.find(".SS devices\nList.\n.TP\n\\fB\\-o\\fR, \\fB\\-\\-output\\fR \\fItext|wide\\fR\nHow\n") !=
        std::string::npos);
  CHECK(page.find("\n\\&.dangerous \\- 'words'") != std::string::npos);
  CHECK(page.find(".SH EXIT STATUS") != std::string::npos);
}

}  // namespace dhc::test

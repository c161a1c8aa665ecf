#include <algorithm>

#include <fmt/format.h>

#include "cli/plugin/command_tree.h"

namespace dhc::cli {

namespace {

/// roff takes a leading dot or apostrophe for a request, and a hyphen for one that may break a line.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else if ((c == '.' || c == '\'') && (out.empty() || out.back() == '\n')) {
      out += "\\&";
      out += c;
    } else {
      out += c;
    }
  }
  return out;
}

std::string head_of(const OptionHelp& option) {
  std::string head;
  for (const auto& name : option.names) head += fmt::format("{}\\fB{}\\fR", head.empty() ? "" : ", ", escaped(name));
  if (!option.value.empty()) head += fmt::format("{}\\fI{}\\fR", head.empty() ? "" : " ", escaped(option.value));
  return head;
}

std::string tagged(const std::string& head, const std::string& about) {
  return fmt::format(".TP\n{}\n{}\n", head, escaped(about));
}

std::string command_section(const CommandHelp& command) {
  auto text = fmt::format(".SS {}", escaped(command.name));
  for (const auto& argument : command.arguments) text += fmt::format(" {}", escaped(argument.value));
  text += fmt::format("\n{}.\n", escaped(command.about));
  for (const auto& argument : command.arguments) text += tagged(head_of(argument), argument.about);
  for (const auto& option : command.options) {
    if (option.names.front() != "-h") text += tagged(head_of(option), option.about);
  }
  return text;
}

constexpr std::string_view kTail = R"(.SH EXIT STATUS
.TP
\fB0\fR
Done, or help was asked for. A view that was watched and ended by Ctrl\-C ends so, too.
.TP
\fB1\fR
It could not be done: no access to the cluster, nothing of that name, refused by the API server, or a configuration has mistakes. Standard error says why.
.TP
\fB2\fR
The command line is wrong.
.TP
\fB3\fR
There is no status to read: no controller has written the ConfigMap device\-health\-status in that namespace.
.TP
\fB4\fR
A replay decides otherwise than was recorded.
.SH ENVIRONMENT
.TP
\fBKUBECONFIG\fR
Kubeconfig files, with colons between them.
.SH SEE ALSO
kubectl(1)
)";

}  // namespace

std::string manual_page(const CommandHelp& program, std::string_view version) {
  auto text = fmt::format(
      ".TH KUBECTL\\-DEVICE_HEALTH 1 \"\" \"device\\-health\\-controller {0}\"\n.SH NAME\n"
      "kubectl\\-device_health, device\\-health\\-controller \\- {1}\n.SH SYNOPSIS\n"
      "\\fBkubectl device\\-health\\fR \\fICOMMAND\\fR [\\fIOPTIONS\\fR]\n.br\n"
      "\\fBdevice\\-health\\-controller\\fR \\fICOMMAND\\fR [\\fIOPTIONS\\fR]\n.SH COMMANDS\n",
      escaped(version), escaped(program.about));
  for (const auto& command : program.commands) text += command_section(command);
  return text + std::string(kTail);
}

}  // namespace dhc::cli

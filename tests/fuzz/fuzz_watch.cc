#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "k8s-client/model/decoder.h"
#include "k8s-client/protocol/line_splitter.h"
#include "tests/fuzz/event_rules.h"

// Any bytes as the stream of a watch: the first byte picks the kind, the second how the stream is cut into pieces. Cut
// or whole, the lines must be the same, and each must be an event with an identity or a version, or bad with a reason.

namespace {

using namespace dhc::k8s;
using namespace fuzz;

std::vector<std::string> split(std::string_view stream, std::size_t piece) {
  std::vector<std::string> lines;
  LineSplitter splitter(kCap);
  while (!stream.empty()) {
    const auto bytes = stream.substr(0, piece);
    splitter.feed(
        bytes, [&](std::string_view line) { lines.emplace_back(line); }, [&] { lines.emplace_back("too long"); });
    must(splitter.held() <= kCap);
    stream.remove_prefix(bytes.size());
  }
  return lines;
}

void check(const WatchEvent& event) {
  check_event(event);
  if (const auto* error = std::get_if<ErrorStatus>(&event.what)) must(!error->body.empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::string_view stream(reinterpret_cast<const char*>(data) + 2, size - 2);
  Decoder decoder(kAllKinds.at(data[0] % kAllKinds.size()), {.prefix = "device-health.io/"});
  const auto lines = split(stream, stream.size());
  must(split(stream, std::size_t{1} + data[1]) == lines);
  for (const auto& line : lines) check(decoder.decode_event(line));
  return 0;
}

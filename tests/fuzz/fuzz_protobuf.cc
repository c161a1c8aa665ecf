#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "k8s-client/model/proto_decoder.h"
#include "k8s-client/protocol/api_error.h"
#include "k8s-client/protocol/frame_splitter.h"
#include "tests/fuzz/event_rules.h"

// Any bytes as a page, a Status and the stream of a watch in protobuf: the first byte picks the kind, the second how
// the stream is cut into pieces. Cut or whole, the frames must be the same; what is read has an identity or a version.

namespace {

using namespace dhc::k8s;
using namespace fuzz;

std::vector<std::string> split(std::string_view stream, std::size_t piece) {
  std::vector<std::string> frames;
  FrameSplitter splitter(kCap);
  bool whole = true;
  while (whole && !stream.empty()) {
    const auto bytes = stream.substr(0, piece);
    whole = splitter.feed(bytes, [&](std::string_view frame) { frames.emplace_back(frame); });
    must(splitter.held() <= kCap);
    stream.remove_prefix(bytes.size());
  }
  return frames;
}

void check(const WatchEvent& event) {
  check_event(event);
  if (const auto* error = std::get_if<ErrorStatus>(&event.what)) (void)error_from_status_object(error->body);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::string_view body(reinterpret_cast<const char*>(data) + 2, size - 2);
  const ProtoDecoder decoder(kAllKinds.at(data[0] % kAllKinds.size()), {.prefix = "device-health.io/"});
  const auto frames = split(body, body.size());
  must(split(body, std::size_t{1} + data[1]) == frames);
  for (const auto& frame : frames) check(decoder.decode_event(frame));
  if (const auto page = decoder.decode_list(body)) must(!page->resource_version.empty());
  (void)error_from_status_object(body);
  return 0;
}

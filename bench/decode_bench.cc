#include <algorithm>
#include <ctime>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "bench/allocations.h"
#include "bench/benches.h"
#include "bench/synthetic_pod.h"
#include "domain/contract/names.h"
#include "k8s-client/model/decoder.h"
#include "k8s-client/model/proto_decoder.h"
#include "k8s-client/model/proto_envelope.h"

namespace dhc::bench {

namespace {

// CPU time of this process: on a shared machine the wall clock measures the neighbours.
double cpu_micros() { return static_cast<double>(std::clock()) * 1e6 / CLOCKS_PER_SEC; }

std::vector<std::string> lines_of(const std::string& path) {
  std::ifstream in(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) {
    if (!line.empty()) lines.push_back(std::move(line));
  }
  return lines;
}

std::vector<std::string> synthetic_lines(bool with_device) {
  std::vector<std::string> lines;
  for (int i = 0; i < 1000; ++i) lines.push_back(R"({"type":"ADDED","object":)" + to_json({i, with_device}) + "}");
  return lines;
}

std::string page_of(const std::vector<std::string>& lines) {
  std::string page = R"({"metadata":{"resourceVersion":"1"},"items":[)";
  constexpr std::string_view kPrefix = R"({"type":"ADDED","object":)";
  for (std::size_t i = 0; i < 500; ++i) {
    if (i != 0) page += ',';
    page.append(lines[i], kPrefix.size(), lines[i].size() - kPrefix.size() - 1);
  }
  return page + "]}";
}

void print(std::string_view what, std::size_t bytes, double micros, double made) {
  fmt::print("{:<44} {:>8} {:>10.2f} {:>10.0f} {:>12.1f}\n", what, bytes, micros, static_cast<double>(bytes) / micros,
             made);
}

// The best of several rounds: only interruptions make a round slower.
template <class Round>
void measure(std::string_view what, std::size_t objects, std::size_t bytes, Round round) {
  round();
  double best = std::numeric_limits<double>::max();
  const auto made_before = allocations().count;
  constexpr int kRounds = 15;
  for (int i = 0; i < kRounds; ++i) {
    const double start = cpu_micros();
    round();
    best = std::min(best, cpu_micros() - start);
  }
  const auto made = static_cast<double>(allocations().count - made_before) / kRounds;
  const auto count = static_cast<double>(objects);
  print(what, bytes / objects, best / count, made / count);
}

void measure_lines(std::string_view what, k8s::Kind kind, const std::vector<std::string>& lines) {
  std::size_t bytes = 0;
  for (const auto& line : lines) bytes += line.size();
  if (lines.empty()) return;
  k8s::Decoder decoder(kind, kKeptFields);
  int bad = 0;
  measure(what, lines.size(), bytes, [&] {
    for (const auto& line : lines)
      bad += std::holds_alternative<k8s::BadObject>(decoder.decode_event(line).what) ? 1 : 0;
  });
  if (bad != 0) fmt::print("  {} lines could not be read\n", bad);
}

// One field of a protobuf message.
std::string field(char tag, std::string_view bytes) {
  std::string out(1, static_cast<char>((static_cast<unsigned>(tag) << 3U) | 2U));
  auto size = bytes.size();
  for (; size >= 0x80U; size >>= 7U) out += static_cast<char>((size & 0x7FU) | 0x80U);
  out += static_cast<char>(size);
  return out.append(bytes);
}

std::string enveloped(std::string_view kind, std::string_view message) {
  return std::string(k8s::proto::kMagic) + field(1, field(1, "v1") + field(2, kind)) + field(2, message);
}

std::string file_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// The first synthetic pod as the API server's own encoder writes it (tests/cluster/cmd/encodings).
void measure_protobuf(const std::string& name, std::string_view what) {
  const auto pod = file_of("tests/fixtures/protobuf/bench/" + name + ".pb");
  const auto frame = field(1, "ADDED") + field(2, field(1, pod));
  const k8s::ProtoDecoder decoder(k8s::Kind::Pod, kKeptFields);
  const auto json = k8s::Decoder(k8s::Kind::Pod, kKeptFields).decode_object(to_json({0, name == "pod-with-device"}));
  const auto protobuf = decoder.decode_object(pod);
  if (!json || !protobuf || *json != *protobuf) fmt::print("  {}: the two decoders disagree\n", what);
  measure(fmt::format("watch frame, {}, protobuf", what), 1000, frame.size() * 1000, [&] {
    for (int i = 0; i < 1000; ++i) (void)decoder.decode_event(frame);
  });
  k8s::Fault fault;
  k8s::proto::Envelope envelope;
  if (!k8s::proto::open_envelope(pod, fault, envelope)) return;
  std::string list = field(1, field(2, "1"));
  for (int i = 0; i < 500; ++i) list += field(2, envelope.message);
  const auto page = enveloped("PodList", list);
  measure(fmt::format("item of a page, {}, protobuf", what), 500, page.size(),
          [&] { (void)decoder.decode_list(page); });
}

}  // namespace

void decode() {
  fmt::print("{:<44} {:>8} {:>10} {:>10} {:>12}\n", "decoding", "bytes", "us each", "MB/s", "allocations");
  const auto with_device = synthetic_lines(true);
  measure_lines("watch line, pod with a device", k8s::Kind::Pod, with_device);
  measure_lines("watch line, pod without", k8s::Kind::Pod, synthetic_lines(false));
  const auto page = page_of(with_device);
  k8s::Decoder decoder(k8s::Kind::Pod, kKeptFields);
  measure("item of a page of 500, pod with a device", 500, page.size(), [&] { (void)decoder.decode_list(page); });
  const auto page_without = page_of(synthetic_lines(false));
  measure("item of a page of 500, pod without", 500, page_without.size(),
          [&] { (void)decoder.decode_list(page_without); });
  measure_protobuf("pod-with-device", "pod with a device");
  measure_protobuf("pod-without", "pod without");
  const std::string recordings = "tests/fixtures/recordings/watch/";
  measure_lines("recorded pod events", k8s::Kind::Pod, lines_of(recordings + "pods-watchlist.ndjson"));
  measure_lines("recorded claim events", k8s::Kind::ResourceClaim, lines_of(recordings + "claims-watchlist.ndjson"));
  measure_lines("recorded node events", k8s::Kind::Node, lines_of(recordings + "nodes-watchlist.ndjson"));
}

}  // namespace dhc::bench

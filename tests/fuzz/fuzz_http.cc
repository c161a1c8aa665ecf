#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "k8s-client/protocol/http_reader.h"

// Any bytes as an HTTP response. Read whole and read in two pieces they give the same status, body and kind of error;
// the body stays within its limit; nothing is read after the end.

namespace {

using namespace dhc;
using namespace dhc::k8s;

constexpr HttpLimits kLimits{.header_bytes = 4096, .body_bytes = 1000};

void must(bool holds) {
  if (!holds) std::abort();
}

struct Reading {
  std::string body;
  Status status;
  HttpReader reader{kLimits, [this](std::string_view piece) {
                      must(reader.header_done() && reader.status() >= 200);
                      body += piece;
                      return true;
                    }};

  void feed(std::string_view bytes) {
    if (status) status = reader.feed(bytes);
  }
  void end() {
    if (status) status = reader.end_of_stream();
    must(!status || reader.done());
    must(body.size() <= kLimits.body_bytes);
    if (status) must(reader.head().status == reader.status());
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0 || size > 20'000) return 0;
  const std::size_t cut = data[0] * (size - 1) / 255;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  Reading whole;
  whole.feed(bytes);
  whole.end();
  Reading pieces;
  pieces.feed(bytes.substr(0, cut));
  pieces.feed(bytes.substr(cut));
  pieces.end();
  must(whole.status.has_value() == pieces.status.has_value());
  if (whole.status) must(whole.body == pieces.body && whole.reader.reusable() == pieces.reader.reusable());
  return 0;
}

#include "k8s-client/protocol/frame_splitter.h"

#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

using namespace dhc::k8s;
using namespace std::string_literals;

namespace {

std::string frame(const std::string& body) {
  const auto size = body.size();
  std::string out;
  for (const auto shift : {24U, 16U, 8U, 0U}) out += static_cast<char>((size >> shift) & 0xFFU);
  return out + body;
}

std::vector<std::string> split(const std::vector<std::string_view>& pieces, bool& whole) {
  FrameSplitter splitter(1000);
  std::vector<std::string> frames;
  whole = true;
  for (const auto piece : pieces) {
    whole = splitter.feed(piece, [&](std::string_view body) { frames.emplace_back(body); }) && whole;
  }
  return frames;
}

TEST_CASE("Frames are the same wherever the stream is cut") {
  const auto big = std::string(300, 'x');
  const auto stream = frame("one") + frame("") + frame("\0\n{"s) + frame(big) + frame("last");
  const std::vector<std::string> wanted = {"one", "\0\n{"s, big, "last"};
  bool whole = false;
  CHECK(split({stream}, whole) == wanted);
  for (std::size_t first = 0; first <= stream.size(); ++first) {
    for (std::size_t length = 0; length <= 5; ++length) {
      const std::string_view all(stream);
      const auto second = std::min(first + length, stream.size());
      CHECK(split({all.substr(0, first), all.substr(first, second - first), all.substr(second)}, whole) == wanted);
      CHECK(whole);
    }
  }
  std::vector<std::string_view> bytes;
  for (std::size_t i = 0; i < stream.size(); ++i) bytes.push_back(std::string_view(stream).substr(i, 1));
  CHECK(split(bytes, whole) == wanted);
}

TEST_CASE("A frame of the cap is read, one that is longer by a byte ends the reading") {
  bool whole = false;
  CHECK(split({frame(std::string(1000, 'x'))}, whole).size() == 1);
  CHECK(whole);
  CHECK(split({frame("one") + frame(std::string(1001, 'x')) + frame("two")}, whole) == std::vector<std::string>{"one"});
  CHECK_FALSE(whole);
  CHECK(split({"\xFF\xFF\xFF\xFF"s, frame("two")}, whole).empty());
  CHECK_FALSE(whole);
}

TEST_CASE("What is held of an unfinished frame is forgotten by a reset") {
  FrameSplitter splitter;
  std::vector<std::string> frames;
  const auto note = [&](std::string_view body) { frames.emplace_back(body); };
  REQUIRE(splitter.feed(frame("unfinished").substr(0, 9), note));
  CHECK(splitter.held() == 5);
  splitter.reset();
  CHECK(splitter.held() == 0);
  REQUIRE(splitter.feed(frame("next"), note));
  CHECK(frames == std::vector<std::string>{"next"});
}

}  // namespace

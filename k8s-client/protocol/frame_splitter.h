#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "k8s-client/protocol/line_splitter.h"

namespace dhc::k8s {

/// Cuts a watch in protobuf, arriving in any pieces, into frames, and holds at most `cap` bytes of an unfinished one. A
/// frame is its length, four bytes with the highest first, and so many bytes. **Source:** apimachinery
/// runtime/serializer/protobuf, LengthDelimitedFramer.
class FrameSplitter {
 public:
  explicit FrameSplitter(std::size_t cap = kMaxLineBytes) : cap_(cap) {}

  /// Calls `frame(std::string_view)` for each frame that is now complete, without its length; the views live until
  /// `frame` returns. False: a frame longer than `cap` was announced. It is not read, and neither is what follows.
  template <class Frame>
  [[nodiscard]] bool feed(std::string_view bytes, Frame&& frame) {
    while (!lost_ && !bytes.empty()) {
      const auto missing = wanted() - partial_.size();
      const auto piece = bytes.substr(0, missing);
      bytes.remove_prefix(piece.size());
      if (in_body_ && piece.size() == length_) {
        in_body_ = false;
        frame(piece);
        continue;
      }
      partial_.append(piece);
      if (piece.size() == missing) complete(frame);
    }
    return !lost_;
  }

  /// Bytes held of a frame that has not ended.
  [[nodiscard]] std::size_t held() const { return partial_.size(); }

  /// Forgets the unfinished frame: the next stream starts with a frame of its own.
  void reset() { *this = FrameSplitter(cap_); }

 private:
  static constexpr std::size_t kLengthBytes = 4;

  [[nodiscard]] std::size_t wanted() const { return in_body_ ? length_ : kLengthBytes; }

  template <class Frame>
  void complete(Frame& frame) {
    // Taken out first, so that `frame` may call `reset`.
    const std::string whole = std::exchange(partial_, std::string());
    if (in_body_) {
      in_body_ = false;
      frame(std::string_view(whole));
      return;
    }
    length_ = 0;
    for (const char c : whole) length_ = (length_ << 8U) | static_cast<unsigned char>(c);
    lost_ = length_ > cap_;
    // A frame without a byte is complete, and says nothing.
    in_body_ = length_ != 0;
  }

  std::size_t cap_;
  std::string partial_;
  std::size_t length_ = 0;  ///< Of the body that comes.
  bool in_body_ = false;
  bool lost_ = false;
};

}  // namespace dhc::k8s

#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace dhc {

/// The next piece of a stream.
struct StreamPiece {
  std::string text;   ///< Empty: nothing now.
  bool last = false;  ///< The stream ends with it.
};

/// One reader of a stream; called on the server's thread, must not wait. Its end is the reader's.
using StreamReader = std::function<StreamPiece()>;

/// Opens a stream for the reader that has everything up to `place` (the request's Last-Event-ID). `bell` may be rung
/// from any thread when the reader has something to say. None: no reader is taken now.
using StreamMaker = std::function<std::optional<StreamReader>(std::string_view place, std::function<void()> bell)>;

}  // namespace dhc

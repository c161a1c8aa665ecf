#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "k8s-client/model/decoder.h"
#include "k8s-client/model/proto_decoder.h"
#include "k8s-client/protocol/frame_splitter.h"
#include "k8s-client/protocol/line_splitter.h"
#include "k8s-client/protocol/watch_machine.h"

namespace dhc::k8s {

/// A watch from bytes to deliveries: cuts lines or frames, decodes them and tells the machine. All that is left to the
/// caller is to send, to wait, and to read the clock.
class WatchSession {
 public:
  explicit WatchSession(const WatchTarget& target);

  /// What to do now.
  [[nodiscard]] WatchStep next(const Now& now, double chance);

  /// A piece of the body of OpenStream's answer. False: end the stream, then call `stream_ended`.
  [[nodiscard]] bool feed(std::string_view bytes, const Now& now, std::vector<Delivery>& out);

  /// The answer to OpenStream is over.
  void stream_ended(const Result<Response>& answer, const Now& now, double chance, std::vector<Delivery>& out);

  /// The answer to SendList.
  void list_answered(const Result<Response>& answer, const Now& now, double chance, std::vector<Delivery>& out);

  /// What was delivered is wrong; the request under way is then to be ended. See WatchMachine.
  void doubt(std::string why, const Now& now, std::vector<Delivery>& out) { machine_.doubt(std::move(why), now, out); }

  /// Somebody wants to know at once what the server has; likewise.
  void list_afresh(const Now& now, std::vector<Delivery>& out) { machine_.list_afresh(now, out); }

  /// Nothing more is wanted.
  void stop() { machine_.stop(); }

  [[nodiscard]] WatchStatus status() const { return machine_.status(); }

 private:
  [[nodiscard]] bool feed_lines(std::string_view bytes, const Now& now, std::vector<Delivery>& out);
  [[nodiscard]] bool feed_frames(std::string_view bytes, const Now& now, std::vector<Delivery>& out);

  Decoder decoder_;
  ProtoDecoder proto_decoder_;
  std::optional<WireFormat> format_;  ///< Of the stream under way, once it has said something.
  LineSplitter lines_;
  FrameSplitter frames_;
  WatchMachine machine_;
};

}  // namespace dhc::k8s

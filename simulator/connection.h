#pragma once
#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>

#include "simulator/script/cluster.h"

namespace dhc::sim {

/// The cluster and those who wait for it: `mutex` guards all but the clock, which is safe to call at any time.
struct SharedCluster {
  SharedCluster(std::uint64_t seed, std::function<Now()> clock_source)
      : clock(std::move(clock_source)), cluster(seed, clock()) {}

  /// Nobody waits any more.
  void stop();

  std::function<Now()> clock;
  std::mutex mutex;
  std::condition_variable_any changed;
  Cluster cluster;
  bool poked = false;    ///< The ticking thread should look again.
  bool stopped = false;  ///< Everybody should leave.
};

/// One client's connection, on a thread of its own: answers requests one after the other until either side has enough.
class Connection {
 public:
  Connection(boost::asio::ip::tcp::socket socket, boost::asio::ssl::context& tls, SharedCluster& shared);
  /// Joins; call `end` before if the client may still be there.
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Breaks the connection: whatever its thread waits for ends. Any thread.
  void end();
  [[nodiscard]] bool done() const { return done_; }

 private:
  struct Stream;
  void serve();
  [[nodiscard]] bool serve_one();
  [[nodiscard]] bool answer(const k8s::Request& request, bool keep_alive);
  [[nodiscard]] bool stream(WatchStream watch, const Answer& head);
  [[nodiscard]] bool wait_out(Millis delay);
  [[nodiscard]] bool client_left() const;
  [[nodiscard]] bool send(std::string_view bytes);

  SharedCluster& shared_;
  std::unique_ptr<Stream> stream_;
  std::atomic<bool> done_ = false;
  std::jthread thread_;
};

}  // namespace dhc::sim

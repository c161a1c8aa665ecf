#include "k8s-client/resolver.h"

#include <atomic>
#include <future>
#include <stdexcept>
#include <thread>

#include <doctest/doctest.h>

#include "tests/support/shell/loopback.h"

using namespace dhc;
using namespace dhc::k8s;
using namespace dhc::test;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

namespace {

/// A name server that answers only when the test is over.
class HangingServer {
 public:
  ~HangingServer() {
    over_.set_value();
    CHECK(eventually([this] { return *left_ == *asked_; }));
  }
  Lookup lookup() {
    return [over = over_future_, asked = asked_, left = left_](const std::string&) -> Result<std::vector<std::string>> {
      ++*asked;
      over.wait();
      ++*left;
      return std::vector<std::string>{"127.0.0.9"};
    };
  }
  int asked() const { return *asked_; }

 private:
  std::promise<void> over_;
  std::shared_future<void> over_future_ = over_.get_future().share();
  std::shared_ptr<std::atomic<int>> asked_ = std::make_shared<std::atomic<int>>(0);
  std::shared_ptr<std::atomic<int>> left_ = std::make_shared<std::atomic<int>>(0);
};

}  // namespace

TEST_CASE("an IP address is its own answer and nobody is asked") {
  const Lookup never = [](const std::string&) -> Result<std::vector<std::string>> { throw std::logic_error("asked"); };
  for (const char* address : {"127.0.0.1", "::1", "2001:db8::1"}) {
    CHECK(resolve(address, Clock::now() + 5s, {}, never) == std::vector<std::string>{address});
  }
}

TEST_CASE("localhost is found by the system's resolver") {
  const auto found = resolve("localhost", Clock::now() + 5s, {});
  REQUIRE_MESSAGE(found, found.error().message);
  CHECK_FALSE(found->empty());
}

TEST_CASE("a stop ends a lookup that hangs") {
  HangingServer server;
  std::stop_source stop;
  std::jthread stopper([&] {
    CHECK(eventually([&] { return server.asked() == 1; }));
    stop.request_stop();
  });
  CHECK(error_of(resolve("slow.example", Clock::now() + 1h, stop.get_token(), server.lookup())) ==
        ErrorKind::Cancelled);
}

TEST_CASE("a lookup that hangs is left at the deadline") {
  HangingServer server;
  CHECK(error_of(resolve("slow.example", Clock::now() + 50ms, {}, server.lookup())) == ErrorKind::TimedOut);
}

TEST_CASE("lookups that hang are not piled up without bound") {
  HangingServer server;
  int refused = 0;
  for (int i = 0; i < 20; ++i) {
    const auto answer = resolve("slow.example", Clock::now() + 1ms, {}, server.lookup());
    if (error_of(answer) == ErrorKind::Unavailable) ++refused;
  }
  CHECK(refused >= 4);
}

TEST_CASE("a lookup that fails or throws is Unavailable and names the host") {
  const Lookup fails = [](const std::string&) -> Result<std::vector<std::string>> {
    return fail(ErrorKind::Unavailable, "no such host as api.example");
  };
  const Lookup throws = [](const std::string&) -> Result<std::vector<std::string>> {
    throw std::runtime_error("out of something");
  };
  for (const Lookup& lookup : {fails, throws}) {
    const auto answer = resolve("api.example", Clock::now() + 5s, {}, lookup);
    CHECK(error_of(answer) == ErrorKind::Unavailable);
    CHECK(answer.error().message.find("api.example") != std::string::npos);
  }
}

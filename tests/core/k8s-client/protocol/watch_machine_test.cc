#include "k8s-client/protocol/watch_machine.h"

#include <string>
#include <variant>
#include <vector>

#include <doctest/doctest.h>

#include "tests/core/k8s-client/protocol/watch_targets.h"
#include "tests/support/core/watch_driver.h"

using namespace dhc;
using namespace dhc::k8s;
using dhc::test::WatchDriver;
using Words = std::vector<std::string>;

namespace {

bool is_page(const std::string& target) { return target.find("limit=500") != std::string::npos; }

}  // namespace

TEST_CASE("the first request is a WatchList without a version, and it is delivered whole at its end marker") {
  WatchDriver watch(Kind::Node);
  const auto target = watch.request();
  CHECK(is_watch_list(target));
  CHECK_FALSE(has_version(target));
  CHECK(watch.added("a", "5"));
  CHECK(watch.added("b", "7"));
  CHECK(watch.added("a", "8"));
  CHECK(watch.deleted("b", "9"));
  CHECK(watch.delivered().empty());
  CHECK_FALSE(watch.machine.status().synced);
  CHECK(watch.bookmark("10", true));
  CHECK(watch.delivered() == Words{"Snapshot(a)"});
  CHECK(watch.added("c", "11"));
  CHECK(watch.deleted("a", "12"));
  CHECK(watch.delivered() == Words{"+c", "-a"});
  CHECK(watch.machine.status().state == WatchState::Watching);
}

TEST_CASE("a server without WatchList is asked for pages at once, and that is remembered") {
  WatchDriver watch(Kind::Node);
  CHECK(is_watch_list(watch.request()));
  watch.fail(ErrorKind::Invalid);
  CHECK(watch.request() == "/api/v1/nodes?limit=500");
  CHECK(watch.waited == Millis(0));
  watch.page({"a", "b"}, "50", "more");
  CHECK(watch.delivered().empty());
  CHECK(watch.request() == "/api/v1/nodes?limit=500&continue=more");
  watch.page({"c"}, "50");
  CHECK(watch.delivered() == Words{"Snapshot(a,b,c)"});
  CHECK(watches_from(watch.request(), "50"));
  CHECK_FALSE(watch.error(410));
  watch.close();
  CHECK(watch.request() == "/api/v1/nodes?limit=500");
}

TEST_CASE("a watch that merely closes goes on from the last version, bookmarks included") {
  WatchDriver watch(Kind::Node);
  watch.sync("100");
  CHECK(watch.added("b", "103"));
  CHECK(watch.bookmark("107"));
  watch.pass(std::chrono::minutes(6));
  watch.close();
  CHECK(watches_from(watch.request(), "107"));
  CHECK(watch.waited == Millis(0));
  CHECK(watch.machine.status().relists == 0);
}

TEST_CASE("a watch that closes within five seconds is opened again with back-off") {
  WatchDriver at(Kind::Node);
  at.sync();
  at.pass(Seconds(5));
  at.close();
  CHECK_FALSE(at.request().empty());
  CHECK(at.waited == Millis(0));
  WatchDriver before(Kind::Node);
  before.sync();
  before.pass(Millis(4999));
  before.close();
  CHECK_FALSE(before.request().empty());
  CHECK(before.waited == Millis(400));
}

TEST_CASE("an event whose version goes back is taken as it is: only lists and bookmarks say where the server is") {
  WatchDriver watch(Kind::Node);
  watch.sync("100");
  CHECK(watch.added("b", "200"));
  CHECK(watch.added("b", "150"));
  watch.close();
  CHECK(watches_from(watch.request(), "150"));
}

TEST_CASE("refused connections, cuts, silence, 401 and 429 never cause a list") {
  for (const auto kind : {ErrorKind::Unavailable, ErrorKind::TimedOut, ErrorKind::Unauthorized,
                          ErrorKind::TooManyRequests, ErrorKind::Malformed, ErrorKind::Forbidden}) {
    WatchDriver watch(Kind::Node);
    watch.sync("100");
    for (int i = 0; i < 20; ++i) {
      watch.fail(kind);
      CHECK(watches_from(watch.request(), "100"));
    }
    CHECK(watch.machine.status().relists == 0);
    CHECK(watch.delivered() == Words{"Snapshot(node-a)"});
  }
}

TEST_CASE("410 as a status and as an event lists again, no older than the last version") {
  for (const bool as_event : {false, true}) {
    WatchDriver watch(Kind::Node);
    watch.sync("100");
    CHECK(watch.bookmark("120"));
    if (as_event) {
      CHECK_FALSE(watch.error(410));
      // The stream is ended by us: what the transport says of it does not matter.
      watch.fail(ErrorKind::Cancelled);
    } else {
      watch.fail(ErrorKind::Gone);
    }
    const auto target = watch.request();
    CHECK(is_watch_list(target));
    CHECK(target.ends_with("&resourceVersion=120"));
    CHECK(watch.waited > Millis(0));
    CHECK(watch.machine.status().state == WatchState::Resyncing);
    CHECK(watch.added("b", "130"));
    CHECK(watch.delivered() == Words{"Snapshot(node-a)"});
    CHECK(watch.bookmark("131", true));
    CHECK(watch.delivered() == Words{"Snapshot(b)"});
    CHECK(watch.machine.status().relists == 1);
  }
}

TEST_CASE("a WatchList whose version is gone or too new is asked again without one") {
  WatchDriver watch(Kind::Node);
  watch.sync("100");
  watch.fail(ErrorKind::Gone);
  CHECK(has_version(watch.request()));
  watch.fail(ErrorKind::Gone);
  const auto target = watch.request();
  CHECK(is_watch_list(target));
  CHECK_FALSE(has_version(target));
  CHECK(watch.bookmark("7", true));
  CHECK(watch.delivered() == Words{"Snapshot(node-a)", "Snapshot()"});
}

TEST_CASE("a server that says 410 to every watch is listed less and less often") {
  WatchDriver watch(Kind::Node, 0.999);
  watch.sync("100");
  int lists = 0;
  const auto start = watch.now.mono;
  while (watch.now.mono - start < std::chrono::minutes(10)) {
    watch.fail(ErrorKind::Gone);
    CHECK(is_watch_list(watch.request()));
    CHECK(watch.bookmark("100", true));
    ++lists;
  }
  // 0.8 + 1.6 + 3.2 + 6.4 + 12.8 + 25.6 s, then one in 30 s.
  CHECK(lists >= 20);
  CHECK(lists <= 26);
}

TEST_CASE("an object deleted while nobody watched is missing in the new snapshot") {
  WatchDriver watch(Kind::Node);
  watch.sync("100");
  CHECK(watch.added("b", "101"));
  watch.fail(ErrorKind::Gone);
  CHECK_FALSE(watch.request().empty());
  CHECK(watch.added("b", "101"));
  CHECK(watch.bookmark("140", true));
  CHECK(watch.delivered() == Words{"Snapshot(node-a)", "+b", "Snapshot(b)"});
}

TEST_CASE("410 in the middle of a list starts it again, a cut does not") {
  WatchDriver watch(Kind::Node);
  CHECK_FALSE(watch.request().empty());
  watch.fail(ErrorKind::Invalid);
  CHECK(is_page(watch.request()));
  watch.page({"a"}, "50", "more");
  CHECK(watch.request().ends_with("continue=more"));
  watch.fail(ErrorKind::Unavailable);
  CHECK(watch.request().ends_with("continue=more"));
  watch.fail(ErrorKind::Gone);
  CHECK(watch.request() == "/api/v1/nodes?limit=500");
  watch.page({"b"}, "60");
  CHECK(watch.delivered() == Words{"Snapshot(b)"});
}

TEST_CASE("a list that goes round in circles or has no version is not believed") {
  WatchDriver watch(Kind::Node);
  CHECK_FALSE(watch.request().empty());
  watch.fail(ErrorKind::Invalid);
  CHECK(is_page(watch.request()));
  watch.page({"a"}, "50", "same");
  CHECK(watch.request().ends_with("continue=same"));
  watch.page({"a"}, "50", "same");
  CHECK(watch.request() == "/api/v1/nodes?limit=500");
  for (const auto* const version : {"", "0"}) {
    watch.page({"a"}, version);
    CHECK(watch.request() == "/api/v1/nodes?limit=500");
  }
  CHECK(watch.delivered().empty());
  CHECK(watch.waited > Millis(0));
}

TEST_CASE("the server's Retry-After is waited for in full, before our own back-off") {
  WatchDriver watch(Kind::Node);
  watch.sync();
  watch.fail(ErrorKind::TooManyRequests, Seconds(7));
  CHECK_FALSE(watch.request().empty());
  CHECK(watch.waited == Seconds(7) + Millis(400));
  watch.fail(ErrorKind::TooManyRequests, std::chrono::hours(9));
  CHECK_FALSE(watch.request().empty());
  CHECK(watch.waited <= Seconds(9) + std::chrono::minutes(6));
}

TEST_CASE("an ERROR event without a row goes on from the same version, the third one in a row lists") {
  WatchDriver watch(Kind::Node);
  watch.sync("100");
  for (int i = 0; i < 2; ++i) {
    CHECK_FALSE(watch.error(500));
    watch.close();
    CHECK(watches_from(watch.request(), "100"));
  }
  CHECK_FALSE(watch.error(500));
  watch.close();
  const auto target = watch.request();
  CHECK(is_watch_list(target));
  CHECK_FALSE(has_version(target));
}

TEST_CASE("ERROR events with good ones between them never list") {
  WatchDriver watch(Kind::Node);
  watch.sync("100");
  for (int i = 0; i < 9; ++i) {
    CHECK(watch.bookmark("101"));
    CHECK_FALSE(watch.error(500));
    watch.close();
    CHECK(watches_from(watch.request(), "101"));
  }
}

TEST_CASE("403 is a state of its own and is asked again with up to 60 s between") {
  WatchDriver watch(Kind::Node, 0.999);
  CHECK_FALSE(watch.request().empty());
  for (int i = 0; i < 10; ++i) {
    const auto before = watch.waited;
    watch.fail(ErrorKind::Forbidden);
    CHECK(watch.machine.status().state == WatchState::Forbidden);
    CHECK(is_watch_list(watch.request()));
    CHECK(watch.waited - before <= Seconds(60));
    CHECK(watch.waited - before >= Seconds(i < 4 ? 1 : 50));
  }
  CHECK_FALSE(watch.machine.status().synced);
  CHECK(watch.bookmark("5", true));
  CHECK(watch.machine.status().state == WatchState::Watching);
}

TEST_CASE("a kind that is not served is delivered once as such and asked for every five minutes") {
  WatchDriver watch(Kind::DeviceTaintRule);
  for (int round = 0; round < 3; ++round) {
    const auto before = watch.waited;
    CHECK(watch.request().starts_with("/apis/resource.k8s.io/v1/devicetaintrules"));
    CHECK(watch.waited - before == (round == 0 ? Millis(0) : Millis(std::chrono::minutes(5))));
    watch.fail(ErrorKind::NotFound);
    CHECK(watch.request().starts_with("/apis/resource.k8s.io/v1beta2/"));
    watch.fail(ErrorKind::NotFound);
    CHECK(watch.request().starts_with("/apis/resource.k8s.io/v1alpha3/"));
    watch.fail(ErrorKind::NotFound);
    CHECK(watch.delivered() == (round == 0 ? Words{"NotServed"} : Words{}));
    CHECK(watch.machine.status().state == WatchState::NotServed);
    CHECK(watch.machine.status().synced);
  }
  CHECK_FALSE(watch.request().empty());
  CHECK(watch.added("rule", "5"));
  CHECK(watch.bookmark("6", true));
  CHECK(watch.delivered() == Words{"Snapshot(rule)"});
  CHECK(watch.machine.status().state == WatchState::Watching);
}

TEST_CASE("an older API version is kept once it answers") {
  WatchDriver watch(Kind::DeviceTaintRule);
  CHECK_FALSE(watch.request().empty());
  watch.fail(ErrorKind::NotFound);
  CHECK(watch.request().starts_with("/apis/resource.k8s.io/v1beta2/"));
  CHECK(watch.waited == Millis(0));
  CHECK(watch.bookmark("6", true));
  watch.close();
  CHECK(watch.request().starts_with("/apis/resource.k8s.io/v1beta2/"));
}

TEST_CASE("a snapshot says which API version it was read from") {
  WatchDriver watch(Kind::DeviceTaintRule);
  CHECK_FALSE(watch.request().empty());
  watch.fail(ErrorKind::NotFound);
  CHECK_FALSE(watch.request().empty());
  CHECK(watch.bookmark("6", true));
  REQUIRE(watch.out.size() == 2);  // with its word
  CHECK(std::get<Snapshot>(watch.out[0]).api_version == "resource.k8s.io/v1beta2");
}

TEST_CASE("a kind that was served is given up only after three rounds of 404, within 15 seconds") {
  WatchDriver watch(Kind::DeviceTaintRule, 0.999);
  watch.sync("100");
  CHECK(watch.delivered() == Words{"Snapshot(node-a)"});
  for (int round = 0; round < 3; ++round) {
    CHECK(watch.delivered().empty());
    for (int version = 0; version < 3; ++version) {
      watch.fail(ErrorKind::NotFound);
      if (version < 2 || round < 2) CHECK_FALSE(watch.request().empty());
    }
  }
  REQUIRE(watch.out.size() == 1);
  CHECK(std::get<Snapshot>(watch.out[0]).api_version.empty());
  CHECK(watch.delivered() == Words{"NotServed"});
  CHECK(watch.machine.status().state == WatchState::NotServed);
  CHECK(watch.waited <= Seconds(15));
}

TEST_CASE("a kind that goes and comes again, in another version, is delivered anew within five minutes") {
  WatchDriver watch(Kind::DeviceTaintRule);
  watch.sync("100");
  for (int answer = 0; answer < 9; ++answer) {
    watch.fail(ErrorKind::NotFound);
    if (answer < 8) CHECK_FALSE(watch.request().empty());
  }
  CHECK(watch.delivered() == Words{"Snapshot(node-a)", "NotServed"});
  const auto gone_at = watch.now.mono;
  const auto first = watch.request();
  CHECK(first.starts_with("/apis/resource.k8s.io/v1/"));
  CHECK(is_watch_list(first));
  CHECK_FALSE(has_version(first));
  CHECK(watch.now.mono - gone_at == std::chrono::minutes(5));
  watch.fail(ErrorKind::NotFound);
  CHECK(watch.request().starts_with("/apis/resource.k8s.io/v1beta2/"));
  CHECK(watch.added("rule", "205"));
  CHECK(watch.bookmark("206", true));
  REQUIRE(watch.out.size() == 2);  // with its word
  CHECK(std::get<Snapshot>(watch.out[0]).api_version == "resource.k8s.io/v1beta2");
  CHECK(watch.delivered() == Words{"Snapshot(rule)"});
  CHECK(watch.now.mono - gone_at == std::chrono::minutes(5));
  CHECK(watch.machine.status().state == WatchState::Watching);
}

TEST_CASE("a server without nodes is none of ours: nothing is concluded") {
  WatchDriver watch(Kind::Node);
  CHECK_FALSE(watch.request().empty());
  for (int i = 0; i < 10; ++i) {
    watch.fail(ErrorKind::NotFound);
    CHECK_FALSE(watch.request().empty());
  }
  CHECK(watch.delivered().empty());
  CHECK_FALSE(watch.machine.status().synced);
  CHECK(watch.waited >= Seconds(60));
}

TEST_CASE("two WatchLists that end before their marker lead to pages") {
  WatchDriver watch(Kind::Node);
  CHECK(is_watch_list(watch.request()));
  CHECK(watch.added("a", "5"));
  watch.close();
  CHECK(is_watch_list(watch.request()));
  CHECK(watch.added("a", "5"));
  watch.pass(Seconds(61));
  CHECK_FALSE(watch.bookmark("9"));
  watch.fail(ErrorKind::Cancelled);
  CHECK(is_page(watch.request()));
  CHECK(watch.machine.status().endings[static_cast<std::size_t>(WatchEnding::Unfinished)] == 1);
}

TEST_CASE("an end marker without a version is not believed") {
  WatchDriver watch(Kind::Node);
  CHECK(is_watch_list(watch.request()));
  CHECK_FALSE(watch.bookmark("0", true));
  watch.close();
  CHECK(is_watch_list(watch.request()));
  CHECK(watch.delivered().empty());
}

TEST_CASE("an object that cannot be read is delivered as such and stops nothing") {
  WatchDriver watch(Kind::Node);
  CHECK_FALSE(watch.request().empty());
  CHECK(watch.bad("x", "uid-x"));
  CHECK(watch.bad("y", "uid-y"));
  CHECK(watch.added("y", "4"));
  CHECK(watch.bookmark("5", true));
  CHECK(watch.delivered() == Words{"Snapshot(y)", "?x"});
  CHECK(watch.bad("y", "uid-y"));
  CHECK(watch.deleted("x", "7"));
  CHECK(watch.delivered() == Words{"?y", "-x"});
  CHECK(watch.machine.status().bad_objects == 3);
}

TEST_CASE("a list names in its Snapshot what it has and nobody can read, also what has no name") {
  const auto unreadable_of = [](const WatchDriver& watch) {
    const Snapshot* snapshot = nullptr;
    for (const auto& delivery : watch.out) {
      if (const auto* one = std::get_if<Snapshot>(&delivery)) snapshot = one;
    }
    REQUIRE(snapshot != nullptr);
    return UnreadableNames(snapshot->unreadable);
  };
  const auto meta = [](const std::string& name) {
    Meta of;
    of.name = name;
    of.uid = "uid-" + name;
    return of;
  };
  WatchDriver stream(Kind::Node);
  CHECK_FALSE(stream.request().empty());
  CHECK(stream.bad("x", "uid-x"));
  CHECK(stream.bad("y", "uid-y"));
  CHECK(stream.added("y", "4"));
  CHECK(stream.bookmark("5", true));
  CHECK(unreadable_of(stream).contains(meta("x")));
  CHECK_FALSE(unreadable_of(stream).contains(meta("z")));
  CHECK_FALSE(unreadable_of(stream).contains(meta("y")));

  WatchDriver unnamed(Kind::Node);
  CHECK_FALSE(unnamed.request().empty());
  CHECK(unnamed.bad("", ""));
  CHECK(unnamed.bookmark("5", true));
  CHECK(unreadable_of(unnamed).contains(meta("z")));

  WatchDriver next(Kind::Node);
  next.sync("100");
  (void)next.delivered();
  next.fail(ErrorKind::Gone);
  CHECK_FALSE(next.request().empty());
  CHECK(next.bookmark("105", true));
  CHECK(unreadable_of(next).empty());
}

TEST_CASE("after an event about nobody the kind is listed at the next good moment") {
  WatchDriver closing(Kind::Node);
  closing.sync("100");
  CHECK(closing.bad("", ""));
  CHECK(closing.bookmark("101"));
  closing.pass(Seconds(30));
  closing.close();
  CHECK(is_watch_list(closing.request()));

  WatchDriver open(Kind::Node);
  open.sync("100");
  CHECK(open.bad("", ""));
  open.pass(Seconds(59));
  CHECK(open.bookmark("101"));
  open.pass(Seconds(1));
  CHECK_FALSE(open.bookmark("102"));
  open.fail(ErrorKind::Cancelled);
  CHECK(open.request().ends_with("&resourceVersion=102"));
  CHECK(open.bookmark("102", true));
  open.pass(std::chrono::minutes(6));
  open.close();
  CHECK(watches_from(open.request(), "102"));
}

TEST_CASE("ten lines in a row about nobody are no watch") {
  WatchDriver watch(Kind::Node);
  CHECK_FALSE(watch.request().empty());
  for (int i = 0; i < 9; ++i) CHECK(watch.bad("", ""));
  CHECK_FALSE(watch.bad("", ""));
  watch.fail(ErrorKind::Cancelled);
  CHECK(is_watch_list(watch.request()));
  CHECK(watch.waited > Millis(0));
  CHECK(watch.machine.status().endings[static_cast<std::size_t>(WatchEnding::Malformed)] == 1);
}

TEST_CASE("a stop ends everything, whatever is going on") {
  WatchDriver watch(Kind::Node);
  watch.sync();
  watch.fail(ErrorKind::Cancelled);
  CHECK(watch.request().empty());
  CHECK(watch.machine.status().state == WatchState::Stopped);
  CHECK_FALSE(watch.added("b", "101"));
  watch.close();
  CHECK(watch.request().empty());
  CHECK(watch.delivered() == Words{"Snapshot(node-a)"});
}

TEST_CASE("a pod that holds no devices is left out of a snapshot, but a driver's is not") {
  WatchDriver watch(Kind::Pod);
  CHECK_FALSE(watch.request().empty());
  Pod plain;
  plain.meta.name = "plain";
  Pod holder;
  holder.meta.name = "holder";
  holder.claims.push_back({.name = "gpu", .claim_name = "gpu-1"});
  CHECK(watch.event({.resource_version = "1", .what = Changed{plain}}));
  CHECK(watch.event({.resource_version = "2", .what = Changed{holder}}));
  Pod driver;
  driver.meta.name = "driver";
  driver.plugin_folders = {"plugins"};
  CHECK(watch.event({.resource_version = "3", .what = Changed{driver}}));
  CHECK(watch.bookmark("4", true));
  CHECK(watch.delivered() == Words{"Snapshot(driver,holder)"});
}

TEST_CASE("the status counts what happened and says when something was heard") {
  WatchDriver watch(Kind::Node);
  watch.sync("100");
  watch.machine.count_bytes(512, WireFormat::Json);
  watch.pass(Seconds(3));
  CHECK(watch.bookmark("101"));
  watch.fail(ErrorKind::Unavailable);
  const auto status = watch.machine.status();
  CHECK(status.kind == Kind::Node);
  CHECK(status.state == WatchState::BackingOff);
  CHECK(status.synced);
  CHECK(status.json_bytes == 512);
  CHECK(status.events == 3);
  CHECK(status.endings[static_cast<std::size_t>(WatchEnding::Unavailable)] == 1);
  CHECK(status.last_error->kind == ErrorKind::Unavailable);
  CHECK(status.last_event_at == watch.now.mono);
}

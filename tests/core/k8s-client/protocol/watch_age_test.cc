// The age of a view: silence, and a server whose data has gone back.
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "k8s-client/protocol/watch_machine.h"
#include "tests/core/k8s-client/protocol/watch_targets.h"
#include "tests/support/core/watch_driver.h"

using namespace dhc;
using namespace dhc::k8s;
using dhc::test::WatchDriver;
using Words = std::vector<std::string>;

namespace {

bool is_fresh_list(const std::string& target) { return is_watch_list(target) && !has_version(target); }
bool is_check(const std::string& target) { return target.ends_with("?limit=1"); }

std::size_t words_of(WatchDriver& watch, WatchWord word) {
  (void)watch.delivered();
  std::size_t count = 0;
  for (const auto& told : watch.told) count += told.word == word ? 1 : 0;
  return count;
}

constexpr Millis kIdle = Seconds(90);

}  // namespace

TEST_CASE("two silent streams in a row list the kind afresh, one does not") {
  WatchDriver watch(Kind::Node);
  watch.sync("100");
  watch.pass(kIdle);
  watch.fail(ErrorKind::TimedOut);
  CHECK(watches_from(watch.request(), "100"));
  watch.pass(kIdle);
  watch.fail(ErrorKind::TimedOut);
  CHECK(is_fresh_list(watch.request()));
  CHECK(watch.machine.status().endings[static_cast<std::size_t>(WatchEnding::Silent)] == 1);
  // The list is a word: it begins anew.
  CHECK(watch.bookmark("140", true));
  watch.pass(kIdle);
  watch.fail(ErrorKind::TimedOut);
  CHECK(watches_from(watch.request(), "140"));
}

TEST_CASE("any word between two silences is enough, be it a bookmark") {
  for (const bool bookmark : {true, false}) {
    WatchDriver watch(Kind::Node);
    watch.sync("100");
    for (int i = 0; i < 5; ++i) {
      watch.pass(kIdle);
      watch.fail(ErrorKind::TimedOut);
      CHECK_FALSE(is_fresh_list(watch.request()));
      CHECK((bookmark ? watch.bookmark("101") : watch.added("a", "101")));
    }
  }
}

TEST_CASE("a stream that timed out within a minute was never open: it is no silence") {
  for (const auto lived : {Millis(59'999), Millis(60'000)}) {
    WatchDriver watch(Kind::Node);
    watch.sync("100");
    for (int i = 0; i < 2; ++i) {
      watch.pass(lived);
      watch.fail(ErrorKind::TimedOut);
      if (i == 0) CHECK(watches_from(watch.request(), "100"));
    }
    CHECK(is_fresh_list(watch.request()) == (lived == Seconds(60)));
  }
}

TEST_CASE("a frozen server is not listed: its check must be answered between two silent streams") {
  WatchDriver watch(Kind::Node);
  watch.sync("100");
  watch.server_version.clear();
  for (int i = 0; i < 10; ++i) {
    watch.pass(kIdle);
    watch.fail(ErrorKind::TimedOut);
    CHECK(is_check(watch.request()));
  }
}

TEST_CASE("before every stream but the first the server's version is asked for, and an older one lists afresh") {
  for (const auto end : {ErrorKind::Unavailable, ErrorKind::TimedOut, ErrorKind::TooManyRequests}) {
    WatchDriver watch(Kind::Node);
    watch.sync("1200");
    watch.server_version.clear();
    watch.fail(end);
    CHECK(is_check(watch.request()));
    watch.page({"other"}, "1000", "more");
    CHECK(watch.machine.status().behind);
    CHECK(watch.machine.status().went_back == 1);
    CHECK(watch.machine.status().went_back_how == "the API server's version is 1000, and was 1200");
    CHECK(is_fresh_list(watch.request()));
    CHECK(watch.added("b", "900"));
    CHECK(watch.bookmark("1001", true));
    CHECK(watch.delivered() == Words{"Snapshot(node-a)", "Snapshot(b)"});
    CHECK_FALSE(watch.machine.status().behind);
    CHECK(watches_from(
        [&] {
          watch.server_version = "1001";
          watch.close();
          return watch.request();
        }(),
        "1001"));
  }
}

TEST_CASE("the same version, or one that cannot be compared, is not older") {
  for (const std::string version : {"1200", "1201", "a1b2", "0999"}) {
    WatchDriver watch(Kind::Node);
    watch.sync("1200");
    watch.server_version = version;
    watch.close();
    CHECK(watches_from(watch.request(), "1200"));
  }
  WatchDriver opaque(Kind::Node);
  opaque.sync("v-17");
  opaque.server_version = "3";
  opaque.close();
  CHECK(watches_from(opaque.request(), "v-17"));
}

TEST_CASE("a check without an answer, or without a version, is asked again and never skipped") {
  WatchDriver watch(Kind::Node);
  watch.sync("100");
  watch.server_version.clear();
  watch.close();
  for (int i = 0; i < 5; ++i) {
    CHECK(is_check(watch.request()));
    watch.fail(ErrorKind::Unavailable);
    CHECK(is_check(watch.request()));
    watch.page({}, "", "");
  }
  CHECK(watch.machine.status().relists == 0);
}

TEST_CASE("a watch that is refused while lists are answered backs off, and is said to be forbidden") {
  WatchDriver watch(Kind::Node);
  watch.sync("100");
  for (int i = 0; i < 10; ++i) {
    watch.fail(ErrorKind::Forbidden);
    CHECK(watch.machine.status().state == WatchState::Forbidden);
    const auto before = watch.waited;
    CHECK(watches_from(watch.request(), "100"));
    if (i > 5) CHECK(watch.waited - before == Seconds(30));
  }
}

TEST_CASE("a check is no word of the watch: the view goes on ageing") {
  WatchDriver watch(Kind::Node);
  watch.sync("100");
  const auto synced_at = watch.now.mono;
  watch.pass(kIdle);
  watch.fail(ErrorKind::TimedOut);
  (void)watch.request();
  CHECK(watch.machine.status().last_event_at == synced_at);
  (void)watch.delivered();
  for (const auto& told : watch.told) CHECK((told.word == WatchWord::Doubted || told.at == synced_at));
}

TEST_CASE("between two streams what is known is doubted, until the server has said that it is no older") {
  WatchDriver watch(Kind::Node);
  watch.sync("100");
  watch.server_version.clear();
  watch.close();
  CHECK(words_of(watch, WatchWord::Doubted) == 1);
  CHECK(is_check(watch.request()));
  watch.fail(ErrorKind::Unavailable);
  CHECK(is_check(watch.request()));
  (void)watch.delivered();
  CHECK(watch.told.back().word == WatchWord::Doubted);
  watch.page({}, "100", "more");
  (void)watch.delivered();
  CHECK(watch.told.back().word == WatchWord::Heard);
  CHECK(words_of(watch, WatchWord::Doubted) == 1);
}

TEST_CASE("a bookmark older than the stream ends it and lists afresh, one as old does not") {
  WatchDriver watch(Kind::Node);
  watch.sync("1000");
  CHECK(watch.added("b", "1200"));
  CHECK(watch.bookmark("1200"));
  CHECK_FALSE(watch.bookmark("1199"));
  watch.fail(ErrorKind::Cancelled);
  CHECK(words_of(watch, WatchWord::Doubted) == 1);
  CHECK(is_fresh_list(watch.request()));
}

TEST_CASE("a fresh list that is older than what was known says so in its snapshot, and one by pages does") {
  for (const bool by_pages : {false, true}) {
    WatchDriver watch(Kind::Node);
    if (by_pages) {
      watch.sync_by_pages("1200");
    } else {
      watch.sync("1200");
    }
    const auto back = [&](const std::string& version) {
      watch.out.clear();
      // 410 first asks for a list no older than ours, which a restored server refuses.
      if (!by_pages) {
        CHECK_FALSE(watch.error(410));
        watch.close();
        (void)watch.request();
        watch.fail(ErrorKind::Gone);
        CHECK(is_fresh_list(watch.request()));
        CHECK(watch.bookmark(version, true));
      } else {
        (void)watch.request();
        watch.fail(ErrorKind::Gone);
        (void)watch.request();
        watch.page({"a"}, version);
      }
      for (const auto& delivery : watch.out) {
        if (const auto* snapshot = std::get_if<Snapshot>(&delivery)) return snapshot->went_back;
      }
      FAIL("no snapshot");
      return false;
    };
    CHECK_FALSE(back("1200"));
    CHECK(back("1000"));
    CHECK_FALSE(back("1001"));
    CHECK(watch.machine.status().went_back == 1);
  }
}

TEST_CASE("two servers that disagree cost one list a minute, and what is known is doubted meanwhile") {
  WatchDriver watch(Kind::Node);
  watch.sync("1200");
  const auto start = watch.now.mono;
  for (int round = 0; round < 5; ++round) {
    watch.server_version = "1000";
    watch.pass(Seconds(10));
    watch.close();
    CHECK(is_fresh_list(watch.request()));
    CHECK(watch.now.mono - start >= round * std::chrono::minutes(1));
    CHECK(watch.bookmark("1200", true));
  }
  CHECK(watch.now.mono - start == 4 * std::chrono::minutes(1) + Seconds(10));
  CHECK(words_of(watch, WatchWord::Doubted) == 5);
}

TEST_CASE("a kind whose deliveries were found to be wrong is listed afresh, whatever its watch is doing") {
  SUBCASE("in a stream") {
    WatchDriver watch(Kind::Node);
    watch.sync("100");
    watch.machine.doubt("a read of node-a", watch.now, watch.out);
    CHECK_FALSE(watch.added("b", "101"));
    watch.fail(ErrorKind::Unavailable);
    CHECK(is_fresh_list(watch.request()));
    CHECK(watch.machine.status().went_back_how == "a read of node-a");
  }
  SUBCASE("waiting") {
    WatchDriver watch(Kind::Node);
    watch.sync("100");
    watch.fail(ErrorKind::Unavailable);
    watch.machine.doubt("a read of node-a", watch.now, watch.out);
    CHECK(is_fresh_list(watch.request()));
  }
  SUBCASE("checking") {
    WatchDriver watch(Kind::Node);
    watch.sync("100");
    watch.server_version.clear();
    watch.close();
    CHECK(is_check(watch.request()));
    watch.machine.doubt("a read of node-a", watch.now, watch.out);
    watch.page({}, "200", "more");
    CHECK(is_fresh_list(watch.request()));
  }
  SUBCASE("listing already, or twice: once is enough") {
    WatchDriver watch(Kind::Node);
    watch.machine.doubt("too early", watch.now, watch.out);
    watch.sync("100");
    watch.machine.doubt("a read", watch.now, watch.out);
    watch.fail(ErrorKind::Unavailable);
    watch.machine.doubt("a read", watch.now, watch.out);
    CHECK(is_fresh_list(watch.request()));
    CHECK(watch.machine.status().went_back == 1);
    CHECK(words_of(watch, WatchWord::Doubted) == 1);
  }
}

TEST_CASE("who asks has the kind listed afresh, whatever its watch is doing, and nothing is called wrong") {
  WatchDriver watch(Kind::Node);
  SUBCASE("in a stream") {
    watch.sync("100");
    watch.machine.list_afresh(watch.now, watch.out);
    CHECK_FALSE(watch.added("b", "101"));
    watch.fail(ErrorKind::Unavailable);
    CHECK(is_fresh_list(watch.request()));
  }
  SUBCASE("waiting") {
    watch.sync("100");
    watch.fail(ErrorKind::Unavailable);
    watch.machine.list_afresh(watch.now, watch.out);
    CHECK(is_fresh_list(watch.request()));
  }
  SUBCASE("listing already, or twice: once is enough") {
    watch.machine.list_afresh(watch.now, watch.out);
    watch.sync("100");
    watch.machine.list_afresh(watch.now, watch.out);
    watch.fail(ErrorKind::Unavailable);
    watch.machine.list_afresh(watch.now, watch.out);
    CHECK(is_fresh_list(watch.request()));
  }
  CHECK(watch.machine.status().went_back == 0);
  CHECK(watch.machine.status().endings[static_cast<std::size_t>(WatchEnding::Asked)] == 1);
}

TEST_CASE("the watch speaks of itself with every bookmark and end of a list, and every 5 s among events") {
  WatchDriver watch(Kind::Node);
  watch.sync("100");
  CHECK(words_of(watch, WatchWord::Heard) == 1);
  watch.pass(Millis(4999));
  CHECK(watch.added("b", "101"));
  CHECK(words_of(watch, WatchWord::Heard) == 1);
  watch.pass(Millis(1));
  CHECK(watch.added("b", "102"));
  CHECK(words_of(watch, WatchWord::Heard) == 2);
  CHECK(watch.bookmark("103"));
  CHECK(watch.bookmark("104"));
  CHECK(words_of(watch, WatchWord::Heard) == 4);
  CHECK(watch.told.back().at == watch.now.mono);
  CHECK(watch.told.back().kind == Kind::Node);
}

TEST_CASE("a line about nobody, an ERROR event and an unfinished list are no word") {
  WatchDriver watch(Kind::Node);
  watch.sync("100");
  const auto synced_at = watch.now.mono;
  watch.pass(Seconds(10));
  CHECK(watch.bad("", ""));
  CHECK_FALSE(watch.error(410));
  watch.close();
  (void)watch.request();
  CHECK(watch.added("a", "101"));
  CHECK(words_of(watch, WatchWord::Heard) == 1);
  CHECK(watch.machine.status().last_event_at == synced_at);
}

TEST_CASE("two watches of one kind are as old as the older of them") {
  WatchStatus a;
  WatchStatus b;
  a.last_event_at = MonoTime(Seconds(5));
  b.last_event_at = MonoTime(Seconds(9));
  b.behind = true;
  a.went_back = 2;
  b.went_back = 1;
  CHECK(merged(a, b).last_event_at == MonoTime(Seconds(5)));
  CHECK(merged(b, a).last_event_at == MonoTime(Seconds(5)));
  CHECK(merged(a, b).behind);
  CHECK(merged(a, b).went_back == 3);
  b.last_event_at.reset();
  CHECK_FALSE(merged(a, b).last_event_at.has_value());
}

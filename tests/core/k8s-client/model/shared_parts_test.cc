#include "k8s-client/model/shared_parts.h"

#include <functional>
#include <string>
#include <utility>
#include <variant>

#include <doctest/doctest.h>

using namespace dhc::k8s;

namespace {

Pod pod_with(StringMap labels) {
  Pod pod;
  pod.meta.labels = std::move(labels);
  pod.meta.controller = OwnerRef{.api_version = "batch/v1", .kind = "Job", .name = "train", .uid = "u"};
  pod.conditions = {{.type = "Ready", .status = "True"}};
  return pod;
}

Pod shared(SharedParts& parts, Pod pod) {
  Object object = std::move(pod);
  parts.share(object);
  return std::get<Pod>(std::move(object));
}

}  // namespace

TEST_CASE("What two pods have in common is kept once, and each says what it said") {
  SharedParts parts;
  const auto a = shared(parts, pod_with({{"app", "web"}, {"index", "0"}}));
  const auto b = shared(parts, pod_with({{"app", "web"}, {"index", "1"}}));
  CHECK(&a.meta.labels[0] == &b.meta.labels[0]);
  CHECK(&a.meta.labels[1] != &b.meta.labels[1]);
  CHECK(&*a.meta.controller == &*b.meta.controller);
  CHECK(&a.conditions[0] == &b.conditions[0]);
  CHECK(a == pod_with({{"app", "web"}, {"index", "0"}}));
  CHECK(b == pod_with({{"app", "web"}, {"index", "1"}}));
}

TEST_CASE("Conditions that differ in anything are not the same") {
  SharedParts parts;
  auto other = pod_with({});
  other.conditions = {{.type = "Ready", .status = "False"}};
  const auto a = shared(parts, pod_with({}));
  const auto b = shared(parts, std::move(other));
  CHECK(a.conditions[0].status == "True");
  CHECK(b.conditions[0].status == "False");
}

TEST_CASE("What nobody holds any more is forgotten, what somebody holds stays") {
  SharedEntries<int, std::hash<int>> entries;
  SharedList<int> kept = {7};
  entries.share(kept);
  for (int i = 100; i < 10'000; ++i) {
    SharedList<int> gone = {i};
    entries.share(gone);
  }
  CHECK(entries.size() < 600);
  SharedList<int> again = {7};
  entries.share(again);
  CHECK(&again[0] == &kept[0]);
}

TEST_CASE("A list of shared entries is compared, added to, changed and sorted by what it says") {
  StringMap map = {{"b", "2"}};
  const auto before = map;
  map.emplace_back("a", "1");
  map.sort();
  CHECK(map == StringMap{{"a", "1"}, {"b", "2"}});
  CHECK(find(map, "b") == "2");
  CHECK(before == StringMap{{"b", "2"}});
  CHECK(before > map);
  map.change_if([](const auto& one) { return one.first == "b"; }, [](auto& one) { one.second = "3"; });
  CHECK(map == StringMap{{"a", "1"}, {"b", "3"}});
  CHECK(before.front().second == "2");
  map.erase_if([](const auto& one) { return one.first == "a"; });
  map.insert(map.begin(), {"a", "0"});
  CHECK(map == StringMap{{"a", "0"}, {"b", "3"}});
  map.clear();
  CHECK(map.empty());
}

TEST_CASE("A value that may be shared is none, or compared by what it says") {
  SharedOptional<std::string> none;
  SharedOptional<std::string> one = std::string("a");
  CHECK_FALSE(none);
  CHECK(none != one);
  CHECK(one == SharedOptional<std::string>(std::string("a")));
  CHECK(one != SharedOptional<std::string>(std::string("b")));
  CHECK(none.value_or("z") == "z");
  CHECK(one.value_or("z") == "a");
  auto copy = one;
  one.reset();
  CHECK(one == none);
  CHECK(*copy == "a");
  const auto before = copy;
  copy.edit() = "c";
  CHECK(*copy == "c");
  CHECK(*before == "a");
}

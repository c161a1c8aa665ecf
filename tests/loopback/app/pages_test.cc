#include "app/pages.h"

#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "app/clock.h"
#include "app/status_store.h"

using dhc::k8s::Kind;

TEST_CASE(
    "a standby answers 503 on /verdicts and names the leader, from its first moment on, and the leader answers 200") {
  dhc::StatusStore store({Kind::Pod}, dhc::Mode::Enforce, true);
  store.watch({.kind = Kind::Pod, .listed = true, .problem = {}, .heard_at = dhc::mono_now()});
  store.policy_loaded();
  auto page = dhc::detail_page(store, "/verdicts");
  CHECK(page.status == 503);
  CHECK(page.body.find(R"("leader":null,"role":"standby")") != std::string::npos);
  store.election({.holder = "other_1"});
  page = dhc::detail_page(store, "/verdicts");
  CHECK(page.status == 503);
  CHECK(page.content_type == "application/json");
  CHECK(page.body.find(R"("leader":"other_1","role":"standby","mode":"enforce")") != std::string::npos);
  store.election({.leads = true, .holder = "me_1"});
  page = dhc::detail_page(store, "/verdicts");
  CHECK(page.status == 200);
  REQUIRE(page.shared);
  CHECK((page.body + *page.shared).find(R"("verdicts":[])") != std::string::npos);
}

TEST_CASE("the verdicts are one text for all who hold it meanwhile, until others are shown") {
  dhc::StatusStore store({});
  store.policy_loaded();
  dhc::Verdict verdict;
  verdict.subject = {.kind = "Pod", .ns = "a", .name = "p", .uid = "u"};
  store.show(std::make_shared<const std::vector<dhc::Verdict>>(3, verdict));
  auto first = dhc::detail_page(store, "/verdicts").shared;
  auto second = dhc::detail_page(store, "/verdicts").shared;
  REQUIRE(first);
  CHECK(first == second);
  store.show(std::make_shared<const std::vector<dhc::Verdict>>(1, verdict));
  const auto third = dhc::detail_page(store, "/verdicts").shared;
  CHECK(third != first);
  CHECK(third->size() < first->size());
  const std::weak_ptr kept = first;
  first.reset();
  CHECK_FALSE(kept.expired());
  second.reset();
  CHECK(kept.expired());
}

TEST_CASE("without an election there is no standby") {
  dhc::StatusStore store({});
  store.policy_loaded();
  const auto page = dhc::detail_page(store, "/verdicts");
  CHECK(page.status == 200);
  CHECK(page.body.find(R"("role":"alone","mode":"observe")") != std::string::npos);
}

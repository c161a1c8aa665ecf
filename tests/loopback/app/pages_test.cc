#include "app/pages.h"

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
  CHECK(page.body.find(R"("verdicts":[])") != std::string::npos);
}

TEST_CASE("without an election there is no standby") {
  dhc::StatusStore store({});
  store.policy_loaded();
  const auto page = dhc::detail_page(store, "/verdicts");
  CHECK(page.status == 200);
  CHECK(page.body.find(R"("role":"alone","mode":"observe")") != std::string::npos);
}

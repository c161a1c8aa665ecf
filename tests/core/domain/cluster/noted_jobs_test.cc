#include "domain/cluster/noted_jobs.h"

#include <string>

#include <doctest/doctest.h>

#include "domain/cluster/recreations.h"
#include "domain/cluster/world.h"
#include "domain/contract/names.h"

using namespace dhc;

TEST_CASE("of the Jobs with losses each namespace has its turn, however many another has") {
  NotedJobs jobs;
  for (int i = 0; i < 100; ++i) jobs.note("loud", "l-" + std::to_string(i), false, true);
  jobs.note("quiet", "q-1", true, true);
  jobs.note("quiet", "q-2", false, true);
  CHECK(jobs.losses() == 102);
  CHECK(jobs.with_losses(4) == std::vector<SharedText>{"l-0", "q-1", "l-1", "q-2"});
  CHECK(jobs.with_losses(1'000).size() == 102);
  CHECK(jobs.with_credits().size() == 1);
  jobs.note("quiet", "q-1", false, true);
  CHECK(jobs.with_credits().empty());
  jobs.drop("quiet", "q-1");
  jobs.drop("quiet", "q-2");
  jobs.drop("quiet", "q-2");
  jobs.drop("nobody", "x");
  CHECK(jobs.losses() == 100);
  CHECK(jobs.with_losses(2) == std::vector<SharedText>{"l-0", "l-1"});
}

TEST_CASE("a dead Job is recreated while its replacement is there, and after it while the dead one is") {
  Recreations recreations;
  recreations.note("new", "a/dead");
  CHECK(recreations.contains("a/dead"));
  CHECK(recreations.dead_of("new") == "a/dead");
  recreations.drop("new", "a/new");
  recreations.keep("a/dead");
  CHECK(recreations.contains("a/dead"));
  recreations.drop("dead", "a/dead");
  CHECK_FALSE(recreations.contains("a/dead"));
}

TEST_CASE("a label that is written again and again leaves nothing behind") {
  Recreations recreations;
  for (int i = 0; i < 1'000; ++i) recreations.note("new", "a/" + std::to_string(i));
  for (int i = 0; i < 999; ++i) CHECK_FALSE(recreations.contains("a/" + std::to_string(i)));
  CHECK(recreations.contains("a/999"));
  recreations.note("other", "a/999");
  recreations.note("new", "");
  CHECK(recreations.contains("a/999"));
  recreations.drop("other", "a/other");
  CHECK_FALSE(recreations.contains("a/999"));
}

TEST_CASE(
    "What is too long to be ours in a Job's annotations is not kept, and what says the same again changes nothing") {
  World world;
  const Now now{.mono = MonoTime(std::chrono::hours(1)), .wall = WallTime(std::chrono::hours(500'000))};
  k8s::Job job;
  job.meta.ns = "a";
  job.meta.name = job.meta.uid = "j";
  job.meta.annotations = {{std::string(kRetryCreditsAnnotation), std::string(kLongestRecord + 1, 'x')}};
  CHECK(world.apply(k8s::Upsert{job}, now));
  CHECK(k8s::find(world.job("j")->job.meta.annotations, kRetryCreditsAnnotation) == "");
  CHECK_FALSE(world.job("j")->credits_readable);
  job.meta.resource_version = "8";
  CHECK_FALSE(world.apply(k8s::Upsert{job}, now));
}

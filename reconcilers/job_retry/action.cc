#include "reconcilers/job_retry/action.h"

#include <fmt/format.h>

#include "domain/limits/write_keys.h"

namespace dhc::job_retry {

ActionFacts PatchJob::facts() const {
  return {.name = "PatchJob",
          .kind = "Job",
          .ns = ns,
          .object = name,
          .uid = uid,
          .what = device,
          .queue = Queue::Jobs,
          .is_notable = true};
}

std::string PatchJob::asks_from(std::int64_t limit) { return fmt::format("backoffLimit other than {}", limit); }

std::string PatchJob::words() const {
  const auto change =
      limit == limit_before ? std::string() : fmt::format(" (backoffLimit {} to {})", limit_before, limit);
  return fmt::format("patch of Job {}/{}{}", ns, name, change);
}

std::optional<WriteKey> PatchJob::write_key() const {
  return WriteKey{.key = job_write_key(uid),
                  .seen_version = resource_version,
                  .asks = limit == limit_before ? std::string() : asks_from(limit_before),
                  .shown_by = {k8s::Kind::Job}};
}

void PatchJob::touch(Touched& touched) const { touched.owner(ns + "/" + uid); }

ActionFacts RecreateJob::facts() const {
  return {.name = "RecreateJob",
          .kind = "Job",
          .ns = ns,
          .object = name,
          .uid = uid,
          .what = device,
          .queue = Queue::Jobs,
          .is_notable = true};
}

std::string RecreateJob::words() const { return fmt::format("replacement of Job {}/{}", ns, name); }

std::optional<WriteKey> RecreateJob::write_key() const {
  return WriteKey{.key = job_recreation_key(uid), .seen_version = {}};
}

void RecreateJob::touch(Touched& touched) const { touched.owner(ns + "/" + uid); }

}  // namespace dhc::job_retry

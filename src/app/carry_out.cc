#include "app/carry_out.h"

#include <utility>
#include <variant>

#include "reconcilers/eviction/execute.h"
#include "reconcilers/hand_over/execute.h"
#include "reconcilers/incident_state/execute.h"
#include "reconcilers/job_retry/execute.h"
#include "reconcilers/notice/execute.h"
#include "reconcilers/owners/execute.h"
#include "reconcilers/status/execute.h"
#include "reconcilers/taint/execute.h"

namespace dhc {

namespace {
template <class... Cases>
struct ByKind : Cases... {
  using Cases::operator()...;
};
}  // namespace

Outcome carry_out(Action action, const k8s::Client& client, std::string_view reporting_instance,
                  const std::stop_token& stop) {
  Outcome outcome;
  // Each reconciler has an `execute` for its own actions.
  std::visit(
      ByKind{[&](const notice::EmitEvent& event) { outcome.status = execute(event, reporting_instance, client, stop); },
             [&](const status::WriteStatus& told) { outcome.status = execute(told, reporting_instance, client, stop); },
             [&](const owners::ReadOwner& read) {
               auto found = execute(read, client, stop);
               outcome.status = std::move(found.status);
               outcome.sight = std::move(found.sight);
             },
             [&](const eviction::EvictPod& evict) {
               auto tried = execute(evict, client, stop);
               outcome.status = std::move(tried.status);
               outcome.reads = std::move(tried.reads);
             },
             [&](const taint::ApplyRule& apply) {
               auto stored = execute(apply, client, stop);
               outcome.status = std::move(stored.status);
               outcome.stored_uid = std::move(stored.uid);
             },
             [&](const auto& one) { outcome.status = execute(one, client, stop); }},
      action);
  outcome.action = std::move(action);
  return outcome;
}

}  // namespace dhc

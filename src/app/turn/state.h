#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "app/controller.h"
#include "app/record/recorder.h"
#include "app/turn/standing_plan.h"
#include "app/turn/state_desk.h"
#include "app/webhook/bulletin.h"
#include "base/believed_clock.h"
#include "domain/cluster/world.h"
#include "domain/findings/affected_pod.h"
#include "domain/findings/rejecting_node.h"
#include "domain/incidents/ailing_watch.h"
#include "domain/incidents/incident_store.h"
#include "domain/incidents/suspect_watch.h"
#include "domain/limits/brake.h"
#include "domain/limits/caps.h"
#include "domain/limits/request_tracker.h"
#include "reconcilers/notice/plan.h"
#include "reconcilers/notice/refused_since.h"
#include "reconcilers/shared/coming_pods.h"
#include "reconcilers/status/desk.h"

namespace dhc {

/// What the controller knows, and what it does in a turn.
struct Controller::State {
  class Planning;

  /// No API server works on a request for longer.
  static constexpr Millis kHappensBy = std::chrono::minutes(2);
  /// What a plan leaves to the next one that follows it.
  static constexpr Millis kAtOnce{1};

  BelievedClock clock;
  World world;
  RequestTracker requests;
  Brake brake;
  IncidentStore incidents;
  Suspects suspects;
  HandedObjects handed;
  AilingPods ailing;
  Rollouts rollouts;
  ComingPods coming;
  AskedTaints asked;
  StateDesk state;
  status::Desk status_desk;
  ViewChecks checks;
  Losses losses;
  Bulletin bulletin;
  std::optional<std::pair<std::string, Moment>> webhook_problem;  // and since when
  std::vector<ViewDoubt> doubts;
  std::optional<Now> clock_taken;  // last
  /// The time to decide by; the API server's times are read by it from then on.
  Now believe(const Now& raw, record::Recorder* recorder) {
    const bool was_in_doubt = clock.is_in_doubt();
    const auto before = std::exchange(clock_taken, raw);
    const auto now = clock.take(raw);
    // It goes on from the moment before, which changed nothing and was not written down.
    if (recorder != nullptr && before && !was_in_doubt && clock.is_in_doubt()) recorder->took(*before, true);
    world.note_server_ahead(clock.server_ahead());
    return now;
  }

  // Not yet told to the incident store, and when they went away.
  std::map<std::string, WallTime> removed_rules;
  std::map<std::string, WallTime> removed_taints;  // nodes
  // Told to an incident store that a later state may replace: it is told of them again.
  std::map<std::string, WallTime> told_rules;
  std::map<std::string, WallTime> told_taints;
  bool is_reloaded = false;  // since the last plan
  // Nodes of which an untaint got no answer, and until when it may happen yet.
  std::map<std::string, MonoTime> doubted_untaints;
  bool leads = true;                   // until an election says otherwise
  std::optional<MonoTime> term_began;  // until what was called bad before it has been judged
  std::shared_ptr<const Policy> policy;
  std::optional<notice::RejectedConfig> rejected;
  notice::RefusedSince refused_since;
  AffectedPods affected_pods;
  StandingPlan standing;
  Touched touched;                    // since the last plan
  MonoTime all_at = MonoTime::min();  // when everything is decided anew
  std::vector<OldView> old_views;     // at the last plan
  std::map<BrakeScope, std::string> brake_words;
  std::set<std::string> untainting;  // nodes
  std::uint64_t guarded_at = 0;      // the incident store's revision when its pools were last asked for
  std::size_t in_flight = 0;
  std::size_t brakes_half_open = 0;
  std::size_t nodes_handed_over = 0;
  std::size_t asked_pods = 0;
  std::uint64_t brake_revision = 0;  // that the incident store knows of
  std::uint64_t suspect_revision = 0;
  std::set<BrakeScope> braked;    // by the last plan
  std::set<std::string> revoked;  // pods whose evictions the last plan found on their way and would not order
  bool looks_everywhere = false;  // for places: of a plan that is made from nothing
  bool blind = false;
  std::vector<PolicyCoverage> coverage;
  bool coverage_told = true;          // of this policy
  MonoTime due_at = MonoTime::min();  // when to plan again whatever comes
  Now planned_at;

  // messages.cc: what comes in
  [[nodiscard]] bool take(Message&& message, const Now& now);
  [[nodiscard]] bool take(k8s::Delivery&& delivery, const Now& now);
  void take(const Leading& message, const Now& now);
  void set_rates(const Now& now);
  void note_loaded(const Now& now);
  void note_webhook(std::string&& problem, const Now& now);
  [[nodiscard]] std::vector<Verdict> of_webhook(const Now& now) const;

  // requests.cc: what is asked of the cluster, and what becomes of it
  void take(Outcome&& outcome, const Now& now);
  void note_sent(const Action& action, const Now& now);
  void note_write(const Action& action, const Now& now);
  void note_eviction(const eviction::EvictPod& evict, const Now& now);
  void touch(const Action& action);
  void take_sight(Outcome& outcome, const Now& now);
  void take_write(const Outcome& outcome, const Now& now);
  void note_stored(const taint::ApplyRule& apply, const Outcome& outcome, const Now& now);
  void note_failed(const taint::DeleteRule& removal);
  void note_handed(const Outcome& outcome, const Now& now);
  void note_asked_taint(const Action& action, bool asked, const Now& now);
  void note_untaint(const std::string& node, const Status& status, const Now& now);
  void settle_doubted_untaints(const Now& now);

  // judging.cc: what of the cluster matters, and what follows for brake and incidents
  [[nodiscard]] Focus take_focus(const Now& now);
  void look_at_devices(const Focus& focus, const Now& now);
  void note_rejecting(const RejectingNodes& rejecting_nodes);
  void note_brake();
  void follow_brakes(Focus& focus, const Now& now);
  void note_removed(const Now& now);
  void note_told_removals();
  [[nodiscard]] bool look_at_suspects(const std::set<DeviceKey>& opened, const Now& now);
  void tell_world(const Focus& focus, const Now& now);

  // planning.cc: what is to be done
  /// Plans once; nothing while too little is known.
  [[nodiscard]] Turn plan(const Now& now);
  [[nodiscard]] Turn stand_by(const Now& now);
  void begin_trial(BrakeTrial trial, const std::string& node);
  [[nodiscard]] std::optional<std::uint64_t> saved_revision() const;
  [[nodiscard]] CapInput cap_input(const Now& now) const;
  [[nodiscard]] bool notes_new_brake();
  [[nodiscard]] bool notes_new_revoked(std::set<std::string> found);
};

}  // namespace dhc

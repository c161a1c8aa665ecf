#pragma once
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "app/incident_counts.h"
#include "app/live/overview.h"
#include "app/losses/losses.h"
#include "app/message.h"
#include "base/now.h"
#include "domain/cluster/view_checks.h"
#include "domain/contract/verdict.h"
#include "domain/findings/policy_coverage.h"
#include "domain/incidents/news.h"

namespace dhc::record {
class Recorder;
}

namespace dhc {

/// Numbers for metrics, taken after a turn.
struct ControllerStats {
  std::size_t pods = 0;
  std::size_t claims = 0;
  std::size_t devices_healthy = 0;
  std::size_t devices_unhealthy = 0;
  std::size_t devices_unknown = 0;
  std::size_t other_words = 0;           ///< Devices reported now with a word that is none of the three.
  std::vector<IncidentCount> incidents;  ///< Of a leader.
  LossFigures losses;                    ///< Since the start, while this process led.
  std::size_t in_flight = 0;
  std::size_t brakes_engaged = 0;
  std::size_t pauses = 0;              ///< In force, of everything and of parts.
  std::size_t nodes_handed_over = 0;   ///< Of which a condition of ours says that they are bad.
  std::int64_t lost_replacements = 0;  ///< Since the start: ended before they ran, because of nodes with our taint.
  std::size_t asked = 0;               ///< Affected pods, pod by device, about which the last plan decided anew.
  std::size_t brakes_half_open = 0;    ///< Whose next trial is due or under way.
  std::string rules_api_version;       ///< Of DeviceTaintRules; empty: the server has none.
  bool synced = false;                 ///< Every required kind has had its first complete list.
  bool blind = false;                  ///< A watch on which steps rest has been silent for too long.
};

/// What one turn decided.
struct Turn {
  std::vector<Action> actions;
  std::optional<MonoTime> wake_at;  ///< When the plan would change by time alone.
  /// A brake has engaged, or an eviction on its way would not be ordered any more: what was ordered before and is not
  /// begun must not be.
  bool recalls = false;
};

/// A turn with all that it says.
struct FullPlan {
  Turn turn;
  std::vector<Verdict> verdicts;
  LossFigures losses;
  std::vector<News> news;
};

/// The whole controller as a value: messages and the time go in, actions come out. One thread.
class Controller {
 public:
  /// A plan stands no longer, whatever it says itself: no mistake about what would change it lasts longer.
  static constexpr Seconds kLongestPlan{5};
  /// And everything is decided anew after this long, whatever was touched.
  static constexpr std::chrono::minutes kLongestTrust{5};

  Controller();
  ~Controller();
  Controller(Controller&&) noexcept;
  Controller& operator=(Controller&&) noexcept;

  /// Takes the messages in. True if the plan may be another by them, or by the time: most updates of a real cluster
  /// change nothing that is kept, and the last plan stands.
  [[nodiscard]] bool take(std::span<Message> messages, const Now& now);

  /// Plans once. Nothing is planned before every watched kind has had a Snapshot and a policy is known, nor while
  /// another leads: then only the World is kept up to date.
  [[nodiscard]] Turn plan(const Now& now);

  /// What would be planned now if nothing were kept of earlier plans. Changes nothing: what `plan` does must be the
  /// same, which tests hold it to after every turn.
  [[nodiscard]] FullPlan plan_from_nothing(const Now& now) const;

  /// Both, whatever the messages change.
  [[nodiscard]] Turn turn(std::span<Message> messages, const Now& now);

  /// Every verdict now held, sorted by subject, device, reason.
  [[nodiscard]] const std::vector<Verdict>& verdicts() const;

  [[nodiscard]] ControllerStats stats() const;
  /// As of the last plan.
  [[nodiscard]] LossFigures losses() const;
  /// How long steps took that were taken since the last call.
  [[nodiscard]] std::vector<Measured> take_measured();

  /// What the live page shows of the last turn; empty while nothing is judged here.
  [[nodiscard]] Overview overview(const Now& now, const std::set<std::string>* nodes = nullptr) const;

  /// Nodes on which something is wrong. Empty where we do not lead.
  [[nodiscard]] std::set<std::string> busy_nodes() const;

  /// True once every kind but ConfigMap has had its first Snapshot.
  [[nodiscard]] bool synced() const;

  /// How much each policy covers, once for each configuration that was taken in and as soon as the World is known;
  /// empty otherwise. Of a standby as well.
  [[nodiscard]] std::vector<PolicyCoverage> take_coverage();

  /// What the webhook is to tell since the last call, in its order; empty without one, and of a standby.
  [[nodiscard]] std::vector<News> take_news();
  [[nodiscard]] const std::vector<News>& news() const;
  /// Whom it tells; null: nobody, or another process leads.
  [[nodiscard]] const WebhookRules* webhook() const;

  /// From now on, best before the first message, the recorder sees all that comes in and is decided; null: no more.
  void record_to(std::shared_ptr<record::Recorder> recorder);
  [[nodiscard]] bool is_recorded() const { return recorder_ != nullptr; }

  /// Watches that a read has shown to be wrong since the last call: their kinds are to be listed afresh.
  [[nodiscard]] std::vector<ViewDoubt> take_doubts();

 private:
  struct State;

  std::unique_ptr<State> state_;
  std::shared_ptr<record::Recorder> recorder_;
};

}  // namespace dhc

#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/now.h"
#include "domain/cluster/ailing_pod.h"
#include "domain/cluster/world.h"
#include "domain/incidents/brake_state.h"
#include "domain/incidents/handed_objects.h"
#include "domain/incidents/incident_store.h"
#include "domain/incidents/news.h"
#include "domain/policy/policy.h"
#include "k8s-client/protocol/delivery.h"
#include "reconcilers/incident_state/plan.h"

namespace dhc {

/// The state ConfigMap's way into the incident store: seen, loaded once a term, waited for at most 30 s, forgotten when
/// an operator deletes it.
class StateDesk {
 public:
  /// What the watch of ConfigMaps says; other kinds are ignored. True if the incident store has been loaded anew.
  [[nodiscard]] bool take(const k8s::Delivery& delivery, IncidentStore& incidents, const Now& now);

  /// What the watch of 0.1.0's ConfigMap says: it is taken over once, and again only if 0.1.0 has led since. True if
  /// the incident store has been loaded anew.
  [[nodiscard]] bool take_earlier(std::optional<k8s::ConfigMap> map, IncidentStore& incidents, const Now& now);

  /// Where 0.1.0's ConfigMap cannot be read for 30 s, what we have written ourselves is enough. True if the incident
  /// store has been loaded by that.
  [[nodiscard]] bool do_without_earlier(IncidentStore& incidents, const Now& now);

  /// A new term begins: what we remember from an earlier one is older than what another leader may have written since.
  /// True if the incident store has been loaded anew.
  [[nodiscard]] bool begin_term(IncidentStore& incidents, const Now& now);

  /// A term has ended: what another leader writes is taken in as the watch shows it.
  void end_term();

  /// By which penalties decay that 0.1.0 has added to. True if the incident store has been loaded anew: what was taken
  /// over before the first policy was known is weighed by it.
  [[nodiscard]] bool note_policy(std::shared_ptr<const Policy> policy, IncidentStore& incidents, const Now& now);

  /// Until when the state is waited for; none: it is there, no longer waited for, or there is none (`own_namespace`
  /// is empty).
  [[nodiscard]] std::optional<MonoTime> waits(const std::string& own_namespace, const Now& now);

  /// What is on its way: the watch will show it.
  void note_sent(const incident_state::WriteState& written);

  /// It was accepted. What an earlier term has sent says nothing in this one.
  void note_saved(const incident_state::WriteState& written, const Now& now);

  /// Whether the ConfigMap was last seen with just what was written: it is saved, whatever the answer says.
  [[nodiscard]] bool shows(const incident_state::WriteState& written) const;

  /// Whether what was sent last has been seen since the last call.
  [[nodiscard]] bool take_seen_own() { return std::exchange(has_seen_own_, false); }

  /// Whether the write belongs to this term.
  [[nodiscard]] bool is_current(const incident_state::WriteState& written) const { return written.term == file_.term; }

  /// Whether what is remembered is surely the newest that was written: a write of this term was accepted, which happens
  /// only at the version that has been read.
  [[nodiscard]] bool has_saved() const { return has_saved_; }

  /// The brakes that were loaded with the incidents last, once.
  [[nodiscard]] std::optional<BrakeMemory> take_brakes() { return std::exchange(brakes_, std::nullopt); }

  /// The suspects, likewise.
  [[nodiscard]] std::optional<Suspects> take_suspects() { return std::exchange(suspects_, std::nullopt); }

  /// The Jobs' pods that were last seen on bad devices, likewise.
  [[nodiscard]] std::vector<AilingPod> take_ailing() { return std::exchange(ailing_, {}); }

  /// The objects by which nodes were handed over, likewise.
  [[nodiscard]] std::optional<HandedObjects> take_handed() { return std::exchange(handed_, std::nullopt); }

  /// What the webhook is to be told again, likewise.
  [[nodiscard]] std::vector<News> take_news() { return std::exchange(news_, {}); }

  [[nodiscard]] const incident_state::StateFile& file() const { return file_; }

 private:
  [[nodiscard]] bool see(std::optional<k8s::ConfigMap> map, IncidentStore& incidents, const Now& now,
                         bool went_back = false);
  void load(IncidentStore& incidents, const Now& now);
  [[nodiscard]] bool load_first(IncidentStore& incidents, const Now& now);
  [[nodiscard]] bool has_unread_earlier() const;
  void add_earlier(StateContent& content);
  void take_sections(std::vector<StateSection> sections, const Now& now);

  incident_state::StateFile file_;
  std::shared_ptr<const Policy> policy_;
  bool is_unweighed_ = false;  // 0.1.0's state was taken over without a policy
  std::optional<BrakeMemory> brakes_;
  std::optional<Suspects> suspects_;
  std::vector<AilingPod> ailing_;
  std::optional<HandedObjects> handed_;
  std::vector<News> news_;
  bool is_listed_ = false;                 // whether it exists is known
  std::optional<k8s::ConfigMap> seen_;     // as it was last seen
  bool knows_earlier_ = false;             // whether 0.1.0's exists is known
  std::optional<k8s::ConfigMap> earlier_;  // as it was last seen
  // From which revision of the store on a state of ours has what was taken over of it; none: one has.
  std::optional<std::uint64_t> unwritten_import_;
  bool is_loaded_ = false;
  std::optional<MonoTime> awaited_since_;
  std::optional<incident_state::WriteState> sent_;  // what we have written last, or tried to
  bool has_seen_own_ = false;
  bool has_saved_ = false;       // in this term
  bool is_overwritten_ = false;  // by another client, since we have written last
};

}  // namespace dhc

#pragma once
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/now.h"
#include "domain/contract/verdict.h"
#include "domain/policy/policy.h"
#include "k8s-client/protocol/watch_status.h"

namespace dhc {

/// What is known of one watch.
struct WatchFact {
  k8s::Kind kind = k8s::Kind::Pod;
  bool listed = false;                    ///< Its first complete list has arrived.
  bool forbidden = false;                 ///< The last answer was 403.
  std::string problem;                    ///< Why the last attempt failed; empty while all is well.
  std::optional<MonoTime> heard_at = {};  ///< Its last word; none: it has none to say, or the kind is not served.
  bool behind = false;         ///< What it delivered is newer than what the server has, and is being listed afresh.
  std::string went_back = {};  ///< When the server's data last went back, in words; empty: never.
  friend bool operator==(const WatchFact&, const WatchFact&) = default;
};

/// What readiness reads of a watch's status: an error counts until the watch runs again.
[[nodiscard]] WatchFact watch_fact(const k8s::WatchStatus& status);

/// Where we stand in the election.
struct ElectionFact {
  bool leads = false;
  std::string holder = {};             ///< Of the Lease, as far as we know; empty: nobody.
  bool leaderless = false;             ///< Nobody has been seen to lead for a minute.
  bool forbidden = false;              ///< The last answer was 403.
  std::string problem = {};            ///< Why the last call failed, naming its verb; empty while all is well.
  bool gave_back = false;              ///< We were blind, and leave the Lease to others for a while.
  std::optional<WallTime> since = {};  ///< Since when we lead, or do not.
  friend bool operator==(const ElectionFact&, const ElectionFact&) = default;
};

/// Whether a watch may be relied on at `now`, by its own account.
[[nodiscard]] bool is_too_old(const WatchFact& watch, MonoTime now);

/// All that health and readiness are judged by.
struct Facts {
  MonoTime last_turn;         ///< When the run loop last finished a turn, or was started.
  Mode mode = Mode::Observe;  ///< The most that the controller does, whatever a policy asks for.
  std::vector<WatchFact> watches;
  bool policy_loaded = false;
  std::optional<ElectionFact> election;       ///< None: there is no election.
  std::optional<Millis> server_ahead = {};    ///< How far the API server's clock is ahead of ours, if it is known.
  std::shared_ptr<const Policy> policy = {};  ///< In force; null: none yet.
  std::string policy_problem;  ///< Why there is no policy, or why the last one was rejected; empty while all is well.
};

/// The answer of a probe.
struct Report {
  bool ok = false;
  std::string text;  ///< One line a check, `[+]` or `[-]` first, as Kubernetes' own probes write it.
};

/// Alive: the run loop has finished a turn within the last 30 s.
[[nodiscard]] Report healthz(const Facts& facts, MonoTime now);

/// Ready: every watched kind is listed, none is forbidden, silent for too long or behind a server whose data has gone
/// back, a policy is loaded, the election is not forbidden and somebody leads. Who stands by is as ready as who leads,
/// and its view has an age as well. Says what is missing line by line.
[[nodiscard]] Report readyz(const Facts& facts, MonoTime now);

/// `alone` (there is no election), `leader` or `standby`.
[[nodiscard]] std::string_view role_of(const Facts& facts);
/// The Lease's holder; empty: nobody leads, as far as we know.
[[nodiscard]] std::string leader_of(const Facts& facts);
/// Why nothing is judged here, naming whom to ask or what is missing; empty: it is.
[[nodiscard]] std::string why_silent(const Facts& facts);

/// What this replica says of every subject, as a JSON object: who leads, whether that is this one, the mode, the age of
/// each watch's last word in seconds (null: none), and the verdicts. Ok: it ends before their list, which follows as
/// `verdicts_list` has it, so that one text of it serves all who ask. Not ok while this replica judges nothing, because
/// it stands by or has not seen everything yet: then it is whole, `verdicts` is null, so that nobody takes it for
/// "nothing is wrong", and `message` says whom to ask or what is missing.
[[nodiscard]] Report verdicts_report(const Facts& facts, const Now& now);

/// The rest of it: the verdicts, each with subject, device, policy, mode, reason, gate, message, since and nextStepAt
/// (null if time alone brings nothing), and the object's end.
[[nodiscard]] std::string verdicts_list(std::span<const Verdict> verdicts);

}  // namespace dhc

#include "domain/contract/job_record.h"

#include <algorithm>
#include <array>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/json_read.h"
#include "base/json_text.h"
#include "base/rfc3339.h"

namespace dhc {

namespace {
using Json = nlohmann::ordered_json;

// An operator may write anything there; what is longer than this was not written by us.
constexpr std::array<std::pair<RetryCredit::State, std::string_view>, 3> kStates = {
    {{RetryCredit::State::Given, "given"},
     {RetryCredit::State::Spent, "spent"},
     {RetryCredit::State::Unspent, "unspent"}}};

std::string_view word_of(RetryCredit::State state) {
  const auto* found = std::ranges::find(kStates, state, &std::pair<RetryCredit::State, std::string_view>::first);
  return found == kStates.end() ? std::string_view("given") : found->second;
}

bool read(const Json& object, const char* key, std::string& out) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_string()) return false;
  out = found->get<std::string>();
  return true;
}

bool read(const Json& object, const char* key, std::int64_t& out) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number_integer()) return false;
  out = found->get<std::int64_t>();
  return out >= 0 && out <= std::int64_t{2147483647};
}

bool read(const Json& object, const char* key, WallTime& out) {
  std::string text;
  if (!read(object, key, text)) return false;
  const auto when = parse_rfc3339(text);
  if (when) out = *when;
  return when.has_value();
}

std::optional<RetryCredit> read_credit(const Json& entry) {
  RetryCredit credit;
  std::string state;
  if (!entry.is_object() || !read(entry, "podUID", credit.pod_uid) || !read(entry, "pod", credit.pod) ||
      !read(entry, "device", credit.device) || !read(entry, "at", credit.at) || !read(entry, "limit", credit.limit) ||
      !read(entry, "state", state)) {
    return std::nullopt;
  }
  const auto* known = std::ranges::find(kStates, state, &std::pair<RetryCredit::State, std::string_view>::second);
  if (known == kStates.end()) return std::nullopt;
  credit.state = known->first;
  return credit;
}

std::optional<JobLoss> read_job_loss(const Json& entry) {
  JobLoss loss;
  if (!entry.is_object() || !read(entry, "what", loss.what) || !read(entry, "podUID", loss.pod_uid) ||
      !read(entry, "pod", loss.pod) || !read(entry, "device", loss.device) || !read(entry, "at", loss.at)) {
    return std::nullopt;
  }
  return loss;
}

Json parse(std::string_view text) { return text.size() > kLongestRecord ? Json() : read_json<Json>(text); }

}  // namespace

const RetryCredit* RetryCredits::find(std::string_view pod_uid) const {
  const auto found = std::ranges::find(credits, pod_uid, &RetryCredit::pod_uid);
  return found == credits.end() ? nullptr : &*found;
}

RetryCredit* RetryCredits::find(std::string_view pod_uid) {
  const auto found = std::ranges::find(credits, pod_uid, &RetryCredit::pod_uid);
  return found == credits.end() ? nullptr : &*found;
}

bool RetryCredits::has_unspent() const {
  return std::ranges::find(credits, RetryCredit::State::Unspent, &RetryCredit::state) != credits.end();
}

std::string format_retry_credits(const RetryCredits& credits) {
  Json list = Json::array();
  for (const auto& credit : credits.credits) {
    list.push_back({{"podUID", credit.pod_uid},
                    {"pod", credit.pod},
                    {"device", credit.device},
                    {"at", format_rfc3339(credit.at)},
                    {"limit", credit.limit},
                    {"state", word_of(credit.state)}});
  }
  return json_text({{"limit", credits.limit}, {"credits", std::move(list)}});
}

std::optional<RetryCredits> parse_retry_credits(std::string_view text) {
  const Json json = parse(text);
  RetryCredits credits;
  if (!json.is_object() || !read(json, "limit", credits.limit)) return std::nullopt;
  const auto list = json.find("credits");
  if (list == json.end() || !list->is_array()) return std::nullopt;
  for (const auto& entry : *list) {
    auto credit = read_credit(entry);
    if (!credit || credits.find(credit->pod_uid) != nullptr) return std::nullopt;
    credits.credits.push_back(*std::move(credit));
  }
  return credits;
}

std::string format_losses(const std::vector<JobLoss>& losses) {
  Json list = Json::array();
  for (const auto& loss : losses) {
    list.push_back({{"what", loss.what},
                    {"podUID", loss.pod_uid},
                    {"pod", loss.pod},
                    {"device", loss.device},
                    {"at", format_rfc3339(loss.at)}});
  }
  return json_text(list);
}

std::optional<std::vector<JobLoss>> parse_losses(std::string_view text) {
  const Json json = parse(text);
  if (!json.is_array() || json.size() > kMostLosses) return std::nullopt;
  std::vector<JobLoss> losses;
  for (const auto& entry : json) {
    auto loss = read_job_loss(entry);
    if (!loss) return std::nullopt;
    losses.push_back(*std::move(loss));
  }
  return losses;
}

}  // namespace dhc

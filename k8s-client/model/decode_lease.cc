#include "k8s-client/model/decode_lease.h"

#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/hash.h"
#include "base/printable.h"
#include "k8s-client/model/decode_meta.h"

namespace dhc::k8s {

namespace {

bool read_count(JsonValue value, Fault& fault, std::int64_t& count) {
  std::optional<std::int64_t> number;
  if (!read_integer(value, fault, number)) return false;
  count = number.value_or(0);
  return true;
}

/// Whatever the API takes for a holder; one that is not a clean name becomes one that no process of ours has.
/// **Source:** seen on 1.37.1: line feeds and 3,000 bytes are accepted.
bool read_holder(JsonValue value, Fault& fault, std::string& holder) {
  constexpr std::size_t kShown = 200;
  if (!read_text(value, fault, holder)) return false;
  if (!is_clean_name(holder)) holder = fmt::format("{} #{:016x}", printable_cut(holder, kShown), stable_hash(holder));
  return true;
}

bool read_spec(JsonValue value, Fault& fault, Lease& lease) {
  lease = {.meta = std::move(lease.meta)};
  return each_field(value, fault, [&](std::string_view key, JsonValue field) {
    if (key == "holderIdentity") return read_holder(field, fault, lease.holder) || fault.in(key);
    if (key == "leaseDurationSeconds") return read_count(field, fault, lease.duration_seconds) || fault.in(key);
    if (key == "acquireTime") return read_name(field, fault, lease.acquire_time) || fault.in(key);
    if (key == "renewTime") return read_name(field, fault, lease.renew_time) || fault.in(key);
    if (key == "leaseTransitions") return read_count(field, fault, lease.transitions) || fault.in(key);
    return true;
  });
}

}  // namespace

bool read_lease(JsonObject root, Fault& fault, const KeptFields& kept, Lease& lease) {
  return read_root(root, fault, kept, Kind::Lease, lease.meta, [&](std::string_view key, JsonValue value) {
    return key != "spec" || read_spec(value, fault, lease);
  });
}

}  // namespace dhc::k8s

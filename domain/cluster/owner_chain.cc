#include "domain/cluster/owner_chain.h"

#include <string_view>

#include "base/printable.h"
#include "domain/contract/names.h"

namespace dhc {

namespace {

constexpr std::size_t kLongestName = 253;

void note_unknown(OwnerChain& chain, const k8s::OwnerRef& owner, bool readable, std::string why) {
  chain.unknown = &owner;
  chain.readable = readable;
  chain.why = std::move(why);
}

/// The metadata of the owner as its read found it; null if there is none, or it is not known.
const k8s::Meta* look_at(const k8s::OwnerRef& owner, const OwnerSight* sight, OwnerChain& chain) {
  if (sight == nullptr) {
    note_unknown(chain, owner, true, words_of(owner) + " has not been read yet, it may have opted out");
    return nullptr;
  }
  if (!chain.oldest_at || sight->at < *chain.oldest_at) {
    chain.oldest = &owner;
    chain.oldest_at = sight->at;
  }
  switch (sight->state) {
    case OwnerSight::State::Found:
      return &sight->meta;
    case OwnerSight::State::Absent:
      return nullptr;
    case OwnerSight::State::Forbidden:
    case OwnerSight::State::Failed:
      note_unknown(chain, owner, true, words_of(owner) + " may have opted out and could not be read: " + sight->why);
      return nullptr;
  }
  return nullptr;
}

}  // namespace

bool is_watched(const k8s::OwnerRef& owner) {
  const bool is_set = owner.kind == "ReplicaSet" || owner.kind == "StatefulSet";
  return (owner.kind == "Job" && owner.api_version.starts_with("batch/")) ||
         (is_set && owner.api_version.starts_with("apps/"));
}

bool says_opt_out(const k8s::Meta& meta) {
  return k8s::find(meta.annotations, kOptOutAnnotation) == std::string_view("true");
}

std::string words_of(const k8s::OwnerRef& owner) {
  return printable_cut(owner.kind, kLongestName) + " " + printable_cut(owner.name, kLongestName);
}

OwnerChain chain_above(const k8s::Meta& meta, const World& world) {
  OwnerChain chain;
  const k8s::Meta* at = &meta;
  for (int depth = 0; depth < kMostOwners && at != nullptr && at->controller; ++depth) {
    const auto& owner = *at->controller;
    // A static pod's, which is never evicted.
    if (owner.kind == "Node" && owner.api_version == "v1") return chain;
    const OwnerSight* sight = nullptr;
    if (is_watched(owner)) {
      at = world.owner(meta.ns, owner.uid);
      if (at == nullptr) {
        note_unknown(chain, owner, false, words_of(owner) + " is not known just now, it may have opted out");
      }
    } else {
      if (!is_plausible(owner)) return chain;
      sight = world.owner_sights().find(meta.ns, owner);
      at = look_at(owner, sight, chain);
    }
    if (at == nullptr || !says_opt_out(*at)) continue;
    chain.opted_out = &owner;
    chain.opted_out_by = sight;
    return chain;
  }
  return chain;
}

}  // namespace dhc

#include "domain/cluster/owner_tree.h"

#include "base/hash.h"

namespace dhc {

namespace {

std::uint64_t by_name(const k8s::Meta& child) {
  const auto& controller = *child.controller;
  return stable_hash(child.ns + "/" + controller.kind + "/" + controller.name);
}

}  // namespace

void OwnerTree::add_pod(const k8s::Meta& pod, const SharedText& controller) {
  if (pod.controller) add(by_name(pod), controller);
}

void OwnerTree::remove_pod(const k8s::Meta& pod, const SharedText& controller) {
  if (pod.controller) remove(by_name(pod), controller);
}

void OwnerTree::add_owner(const k8s::Meta& owner) {
  if (!owner.controller) return;
  add(by_name(owner), owner.identity());
  add(stable_hash(owner.controller_identity()), owner.identity());
}

void OwnerTree::remove_owner(const k8s::Meta& owner) {
  if (!owner.controller) return;
  remove(by_name(owner), owner.identity());
  remove(stable_hash(owner.controller_identity()), owner.identity());
}

void OwnerTree::add(std::uint64_t hash, const SharedText& identity) { ++children_[{hash, identity}]; }

void OwnerTree::remove(std::uint64_t hash, const SharedText& identity) {
  const auto found = children_.find({hash, identity});
  if (found != children_.end() && --found->second == 0) children_.erase(found);
}

std::vector<std::string> OwnerTree::under(std::string_view controller) const {
  std::vector<std::string> found;
  const auto hash = stable_hash(controller);
  for (auto at = children_.lower_bound({hash, {}}); at != children_.end() && at->first.first == hash; ++at)
    found.push_back(at->first.second);
  return found;
}

}  // namespace dhc

#include "k8s-client/model/shared_parts.h"

#include <functional>
#include <string_view>
#include <type_traits>
#include <variant>

namespace dhc::k8s {

namespace {

std::size_t hash_of(std::string_view first, std::string_view second) {
  constexpr std::size_t kFactor = 0x9E3779B97F4A7C15U;
  return std::hash<std::string_view>{}(first)*kFactor + std::hash<std::string_view>{}(second);
}

}  // namespace

std::size_t SharedParts::PairHash::operator()(const StringMap::value_type& pair) const {
  return hash_of(pair.first, pair.second);
}

std::size_t SharedParts::OwnerHash::operator()(const OwnerRef& owner) const { return hash_of(owner.uid, owner.name); }

std::size_t SharedParts::ConditionHash::operator()(const Condition& condition) const {
  return hash_of(condition.type, condition.message);
}

std::size_t SharedParts::ImagesHash::operator()(const std::vector<ContainerImage>& images) const {
  std::size_t hash = 0;
  for (const auto& one : images) hash = hash * 31 + hash_of(one.container, one.image);
  return hash;
}

void SharedParts::share_text(SharedText& text) {
  if (text.has_body()) text = texts_.take_in(text).first;
}

/// What the values of several labels have in common, as a Job's pods have its name and UID in two each.
void SharedParts::share_pairs(StringMap& map) {
  pairs_.share(map, [this](StringMap::value_type& pair) {
    share_text(pair.first);
    share_text(pair.second);
  });
}

void SharedParts::share_pod(Pod& pod) {
  share_text(pod.node_name);
  for (auto& request : pod.requests) share_text(request.resource);
  for (auto& resource : pod.allocated) {
    share_text(resource.name);
    for (auto& device : resource.devices) {
      for (auto& container : device.containers) share_text(container);
    }
  }
  conditions_.share(pod.conditions);
  scheduling_.share(pod.scheduling);
  images_.share(pod.images);
}

void SharedParts::share_meta(Meta& meta) {
  share_text(meta.ns);
  share_pairs(meta.labels);
  share_pairs(meta.annotations);
  owners_.share(meta.controller, [this](OwnerRef& owner) {
    for (auto* part : {&owner.api_version, &owner.kind, &owner.name, &owner.uid}) share_text(*part);
  });
}

void SharedParts::share(Object& object) {
  std::visit(
      [this]<class T>(T& one) {
        share_meta(one.meta);
        if constexpr (std::is_same_v<T, Pod>) {
          share_pod(one);
        } else if constexpr (std::is_same_v<T, ResourceClaim>) {
          requests_.share(one.requests);
          for (auto& result : one.results) {
            share_text(result.request);
            share_text(result.driver);
            share_text(result.pool);
          }
        } else if constexpr (std::is_same_v<T, ResourceSlice>) {
          for (auto& device : one.devices) share_pairs(device.attributes);
        }
      },
      object);
}

}  // namespace dhc::k8s

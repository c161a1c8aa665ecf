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

std::size_t SharedParts::PairHash::operator()(const std::pair<std::string, std::string>& pair) const {
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

void SharedParts::share_meta(Meta& meta) {
  pairs_.share(meta.labels);
  pairs_.share(meta.annotations);
  owners_.share(meta.controller);
}

void SharedParts::share(Object& object) {
  std::visit(
      [this]<class T>(T& one) {
        share_meta(one.meta);
        if constexpr (std::is_same_v<T, Pod>) {
          conditions_.share(one.conditions);
          scheduling_.share(one.scheduling);
          images_.share(one.images);
        } else if constexpr (std::is_same_v<T, ResourceClaim>) {
          requests_.share(one.requests);
        } else if constexpr (std::is_same_v<T, ResourceSlice>) {
          for (auto& device : one.devices) pairs_.share(device.attributes);
        }
      },
      object);
}

}  // namespace dhc::k8s

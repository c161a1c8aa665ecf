#include "k8s-client/model/pod_requests.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "k8s-client/model/decode_meta.h"

namespace dhc::k8s {

namespace {

std::int64_t& entry_of(std::vector<ResourceAmount>& amounts, const std::string& resource) {
  auto at = std::ranges::lower_bound(amounts, resource, {}, &ResourceAmount::resource);
  if (at == amounts.end() || at->resource != resource) at = amounts.insert(at, ResourceAmount{resource, 0});
  return at->amount;
}

bool add(std::vector<ResourceAmount>& sum, const std::vector<ResourceAmount>& more) {
  for (const auto& [resource, amount] : more) {
    auto& total = entry_of(sum, resource);
    if (total > std::numeric_limits<std::int64_t>::max() - amount) return false;
    total += amount;
  }
  return true;
}

void raise(std::vector<ResourceAmount>& most, const std::vector<ResourceAmount>& other) {
  for (const auto& [resource, amount] : other) {
    auto& total = entry_of(most, resource);
    total = std::max(total, amount);
  }
}

bool read_limits(JsonValue value, Fault& fault, std::vector<ResourceAmount>& limits) {
  limits.clear();
  return each_field(value, fault, [&](std::string_view key, JsonValue field) {
    return key != "limits" || read_amounts(field, fault, limits) || fault.in(key);
  });
}

}  // namespace

bool add_limits(const std::vector<ResourceAmount>& limits, Fault& fault, std::vector<ResourceAmount>& sum) {
  return add(sum, limits) ? true : fault.is("resource amounts add up to more than 2^63-1");
}

bool read_init_request(JsonValue value, Fault& fault, InitRequest& request) {
  return each_field(value, fault, [&](std::string_view key, JsonValue field) {
    if (key == "resources") return read_limits(field, fault, request.limits) || fault.in(key);
    if (key != "restartPolicy") return true;
    std::string policy;
    if (!read_name(field, fault, policy)) return fault.in(key);
    request.sidecar = policy == "Always";
    return true;
  });
}

void note_image(ContainerImage image, const std::vector<ResourceAmount>& limits, bool has_claims,
                std::vector<ContainerImage>& images) {
  const bool asks = has_claims || std::ranges::any_of(limits, [](const auto& limit) { return limit.amount > 0; });
  if (asks && !image.image.empty() && image.image.size() <= kLongestImage && is_clean_name(image.image))
    images.push_back(std::move(image));
}

bool read_containers(JsonValue value, Fault& fault, std::vector<ResourceAmount>& sum,
                     std::vector<ContainerImage>& images) {
  sum.clear();
  images.clear();
  return each_item(value, fault, [&](JsonValue item) {
    std::vector<ResourceAmount> limits;
    ContainerImage container;
    bool has_claims = false;
    const auto read_resources = [&](std::string_view key, JsonValue field) {
      if (key == "limits") return read_amounts(field, fault, limits) || fault.in(key);
      if (key != "claims") return true;
      has_claims = false;
      return each_item(field, fault, [&](JsonValue /*claim*/) { return has_claims = true; }) || fault.in(key);
    };
    const bool read = each_field(item, fault, [&](std::string_view key, JsonValue field) {
      if (key == "name") return read_name(field, fault, container.container) || fault.in(key);
      if (key == "image") return read_text(field, fault, container.image) || fault.in(key);
      if (key != "resources") return true;
      limits.clear();
      has_claims = false;
      return each_field(field, fault, read_resources) || fault.in(key);
    });
    note_image(std::move(container), limits, has_claims, images);
    return read && add_limits(limits, fault, sum);
  });
}

bool total_requests(const std::vector<ResourceAmount>& containers, const std::vector<InitRequest>& init,
                    std::vector<ResourceAmount>& total) {
  std::vector<ResourceAmount> sidecars;
  std::vector<ResourceAmount> worst;
  for (const auto& request : init) {
    auto during = request.limits;
    if (!add(during, sidecars)) return false;
    if (request.sidecar) {
      sidecars = std::move(during);
    } else {
      raise(worst, during);
    }
  }
  total = containers;
  if (!add(total, sidecars)) return false;
  raise(total, worst);
  std::erase_if(total, [](const ResourceAmount& amount) { return amount.amount == 0; });
  total.shrink_to_fit();
  return true;
}

}  // namespace dhc::k8s

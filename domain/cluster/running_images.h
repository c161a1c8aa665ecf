#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "domain/cluster/resolution.h"
#include "domain/contract/device_key.h"
#include "domain/contract/owner_share.h"
#include "k8s-client/model/pod.h"

namespace dhc {

class World;

/// What the containers run that ask for devices in the pod: each image once, as `NAMESPACE/container image/NAME`,
/// sorted. In the pod's own namespace, so that nobody speaks of another tenant's.
[[nodiscard]] std::vector<std::string> image_names_of(const k8s::Pod& pod);

/// Likewise, of the containers that hold this device, where the kubelet names any.
[[nodiscard]] std::vector<std::string> image_names_of(const k8s::Pod& pod, const HeldDevice& held_device);

/// The images that run on the device now, each once, sorted.
[[nodiscard]] std::vector<std::string> images_on(const DeviceKey& key, const World& world);

/// Whether a name is an image's, and no workload's.
[[nodiscard]] bool is_image_name(std::string_view name);

/// `image registry.example.com/train:1 in namespace ml`, as people read it.
[[nodiscard]] std::string words_of_image(std::string_view name);

/// As `share_of` a workload: what share pods that run the image have of the devices that are held.
[[nodiscard]] OwnerShare share_of_image(std::string_view name, const DeviceKey& key, const World& world);

}  // namespace dhc

#include "domain/contract/ground_names.h"

#include <string>

#include <doctest/doctest.h>

#include "domain/cluster/running_images.h"

namespace dhc {

TEST_CASE("The names of nodes and releases are read back, and are no workload's or image's") {
  const auto node = ground_of_node("gpu-a-017");
  CHECK(is_ground_name(node));
  CHECK(node_of_ground(node) == "gpu-a-017");
  CHECK_FALSE(release_of_ground(node));
  CHECK(words_of_ground(node) == "node gpu-a-017");
  const ReleaseName driver{.ns = "kube-system", .name = "gpu-driver", .revision = "6d4f"};
  const auto release = ground_of_release(driver);
  CHECK(is_ground_name(release));
  CHECK(release_of_ground(release) == driver);
  CHECK_FALSE(node_of_ground(release));
  CHECK(words_of_ground(release) == "revision 6d4f of DaemonSet kube-system/gpu-driver");
  for (const std::string other : {"at/Job/node", "node/Job/a", "release/DaemonSet/a", "ml/container image/at node/a"}) {
    CHECK_FALSE(is_ground_name(other));
    CHECK_FALSE(node_of_ground(other));
    CHECK_FALSE(release_of_ground(other));
  }
  CHECK_FALSE(is_image_name(node));
  CHECK_FALSE(is_image_name(release));
  CHECK_FALSE(release_of_ground("at release/damaged"));
}

}  // namespace dhc

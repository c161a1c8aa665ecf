#include "reconcilers/status/execute.h"

#include <utility>

#include "reconcilers/status/build.h"

namespace dhc::status {

Status execute(const WriteStatus& action, std::string_view instance, const k8s::Client& client, std::stop_token stop) {
  return k8s::send(build_status(action, instance), client, std::move(stop));
}

}  // namespace dhc::status

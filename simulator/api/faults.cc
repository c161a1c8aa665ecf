#include "simulator/api/faults.h"

#include <fmt/format.h>

namespace dhc::sim {

std::optional<Fault> FaultScript::take(const k8s::Request& request) {
  const bool is_watch = parse_target(request.target).flag("watch");
  for (auto it = faults_.begin(); it != faults_.end(); ++it) {
    if (it->method && *it->method != request.method) continue;
    if (request.target.find(it->path_contains) == std::string::npos) continue;
    if (is_watch && !it->watches) continue;
    Fault hit = *it;
    // One without a count stays.
    const bool is_last = it->count == 1;
    if (it->count > 0) --it->count;
    if (is_last) faults_.erase(it);
    return hit;
  }
  return std::nullopt;
}

Answer faulty_answer(const Fault& fault) {
  Answer answer = answer_failure(*fault.status, "", fmt::format("injected fault: HTTP {}", *fault.status));
  if (!fault.body.empty()) answer.body = fault.body;
  for (const auto& header : fault.headers) {
    std::erase_if(answer.headers, [&](const k8s::Header& other) { return other.name == header.name; });
    answer.headers.push_back(header);
  }
  return answer;
}

void spoil(const Fault& fault, Answer& answer) {
  answer.delay += fault.delay;
  if (answer.watch) {
    answer.watch->set_faults({fault.cut_after, fault.duplicate, fault.reorder});
  } else {
    answer.cut_after = fault.cut_after;
  }
}

}  // namespace dhc::sim

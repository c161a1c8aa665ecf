#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "app/log.h"
#include "app/webhook/webhook_queue.h"
#include "domain/incidents/news.h"
#include "domain/policy/policy.h"
#include "k8s-client/protocol/request.h"

namespace dhc {

/// What a webhook asks and tells of itself; called on its own thread, but `ended` of what is dropped on the caller's.
struct WebhookCalls {
  std::function<void(WebhookEnd)> ended;            ///< What became of an event.
  std::function<void(const std::string&)> problem;  ///< What is wrong, when that changes; empty: nothing any more.
  std::function<Status(k8s::Request&)> admit;       ///< Whether it may be sent: who does not lead tells nothing.
};

/// Signs and sends what is news to one receiver, on a thread of its own. Neither the key nor the URL's path is ever
/// printed.
class Webhook {
 public:
  /// `log` outlives it. `own_namespace` stands in the events' source.
  Webhook(std::string own_namespace, WebhookCalls calls, Log& log);
  /// Ends within 100 ms, whatever is under way. What has not been sent is told by whoever leads next.
  ~Webhook();
  Webhook(const Webhook&) = delete;
  Webhook& operator=(const Webhook&) = delete;

  /// Never waits. Null: nobody is to be told any more, and what waits is forgotten; another URL gets what waits.
  void tell(const WebhookRules* rules, std::vector<News> news);

  /// Asks the thread to end, and does not wait.
  void request_stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dhc

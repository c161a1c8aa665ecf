#include "app/live/live_page.h"

#include <utility>
#include <vector>

#include "app/clock.h"
#include "app/pages.h"

namespace dhc {

LivePage::LivePage()
    : status_store_({}, Mode::Enforce), now_(wall_now()), feed_(status_store_, [this] {
        const std::lock_guard lock(mutex_);
        return now_;
      }) {
  status_store_.policy_loaded();
  feed_.on_first_reader([this] { show(); });
}

Result<std::unique_ptr<LivePage>> LivePage::start() {
  std::unique_ptr<LivePage> page(new LivePage());
  auto server = AdminServer::start(
      {.host = "127.0.0.1", .port = 0},
      [self = page.get()](std::string_view path) { return detail_page(self->status_store_, path); }, Audience::Loopback,
      {.path = std::string(kEventsPath),
       .open = [self = page.get()](std::string_view place, std::function<void()> bell) {
         return self->feed_.open(place, std::move(bell));
       }});
  if (!server) return std::unexpected(std::move(server.error()));
  page->server_ = std::move(*server);
  return page;
}

void LivePage::show(Overview overview, std::span<const Verdict> verdicts, const Now& now) {
  {
    const std::lock_guard lock(mutex_);
    overview_ = std::move(overview);
    now_ = now.wall;
  }
  status_store_.show(std::make_shared<const std::vector<Verdict>>(verdicts.begin(), verdicts.end()));
  show();
}

void LivePage::show() {
  status_store_.turn_done(mono_now());
  if (!feed_.wanted()) return;
  Overview overview;
  {
    const std::lock_guard lock(mutex_);
    overview = overview_;
  }
  feed_.show(OverviewLog::Part::Facts, overview_of_facts(status_store_.facts(), read_now()));
  feed_.show(OverviewLog::Part::Cluster, std::move(overview));
}

}  // namespace dhc

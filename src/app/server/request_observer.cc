#include "app/server/request_observer.h"

#include "base/duration.h"
#include "base/text.h"

#include <fmt/format.h>

#include <string>
#include <utility>

namespace sluice::app {

RequestObserver::RequestObserver(RequestLog& log, const frontend::RequestMeters& meters,
                                 metrics::Shard shard, Operator who)
    : log_(log), meters_(meters), shard_(shard), who_(std::move(who)), throttle_(who_.say) {}

void RequestObserver::ended(const frontend::AccessRecord& record, Now now) noexcept {
  meters_.ended(shard_, record);
  log_.ended(record, now);
}

void RequestObserver::ignored_forwarding() noexcept {
  if (std::exchange(has_warned_, true)) return;
  who_.warn(
      "requests have forwarding headers but come from no trusted proxy, so they count by the "
      "address of the proxy; if it is yours, add it to clients.trusted_proxies");
}

void RequestObserver::server_ejected(const frontend::ServerEjection& ejection) noexcept {
  who_.ejected({.upstream = std::string{ejection.place.upstream},
                .server = text_of(ejection.place),
                .text = fmt::format("ejected for {} after {}", format_duration(ejection.lasts),
                                    counted(ejection.failures, "consecutive failure")),
                .lasts = ejection.lasts});
}

}  // namespace sluice::app

// The handler and the access of each path. Filled at start, immutable in use.
#pragma once

#include "frontend/admin/guard.h"
#include "frontend/admin/message.h"
#include "net/http/server/http_routes.h"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace sluice::admin {

enum class Access : std::uint8_t {
  open,     // to all clients: probes have no token, and learn nothing
  guarded,  // as the guard decides
};

using Handler = net::PlainHandler;

class Routes {
 public:
  // The path is a pattern (http_routes.h). The meaning is for the listing.
  void add(std::string_view method, std::string_view path, Access access, std::string_view meaning,
           Handler handler);

  // By the headers alone: whether the request is rejected, whatever its body is. A client without
  // access does not learn which paths exist.
  [[nodiscard]] std::optional<Reply> refuse(const Request& request, const net::RouteMatch& match,
                                            const Guard& guard) const;

  // The response to a client, without a server.
  [[nodiscard]] Reply answer(const Request& request, const Guard& guard) const;

  [[nodiscard]] const net::HttpRoutes& table() const noexcept { return table_; }
  // One line for each path.
  [[nodiscard]] std::string listing() const;

 private:
  struct Page {
    Access access = Access::guarded;
    std::string meaning;
  };

  net::HttpRoutes table_;
  std::map<std::string, Page, std::less<>> pages_;  // by pattern
};

}  // namespace sluice::admin

// Which path is answered by whom. Filled at start, immutable in use.
#pragma once

#include "frontend/admin/guard.h"
#include "frontend/admin/message.h"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace sluice::admin {

enum class Access : std::uint8_t {
  open,     // to everybody: probes come without tokens, and learn nothing
  guarded,  // as the guard says
};

using Handler = std::function<Reply(const Request&)>;

class Routes {
 public:
  // HEAD is answered wherever GET is. The meaning is for people who look around.
  void add(std::string_view method, std::string_view path, Access access, std::string_view meaning,
           Handler handler);

  // By the head alone: whether it will be refused, whatever its body is. Who may not ask does not
  // learn which paths there are.
  [[nodiscard]] std::optional<Reply> refuse(const Request& request, const Guard& guard) const;

  [[nodiscard]] Reply answer(const Request& request, const Guard& guard) const;

  // One line for each path.
  [[nodiscard]] std::string listing() const;

 private:
  struct Path {
    Access access = Access::guarded;
    std::string meaning;
    std::map<std::string, Handler, std::less<>> by_method;
  };

  [[nodiscard]] static std::string methods_of(const Path& path);
  [[nodiscard]] static std::string_view method_of(const Request& request) noexcept {
    return request.method == "HEAD" ? std::string_view{"GET"} : request.method;
  }

  std::map<std::string, Path, std::less<>> paths_;
};

}  // namespace sluice::admin

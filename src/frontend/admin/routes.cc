#include "frontend/admin/routes.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace sluice::admin {

void Routes::add(std::string_view method, std::string_view path, Access access,
                 std::string_view meaning, Handler handler) {
  pages_[std::string{path}] = {.access = access, .meaning = std::string{meaning}};
  table_.add(method, path, std::move(handler));
}

std::optional<Reply> Routes::refuse(const Request& request, const net::RouteMatch& match,
                                    const Guard& guard) const {
  using Kind = net::RouteMatch::Kind;
  const auto page = pages_.find(match.pattern);
  const bool is_open = page != pages_.end() && page->second.access == Access::open;
  if (!is_open) {
    if (std::optional<Reply> refusal = guard.refuse(request)) return refusal;
  }
  switch (match.kind) {
    case Kind::found: return std::nullopt;
    case Kind::no_path: return problem(404, "There is nothing here; / lists what there is.");
    case Kind::malformed: return problem(400, "This path cannot be decoded.");
    case Kind::no_method: break;
  }
  Reply refused = problem(405, "This method is not known here.");
  refused.headers.emplace_back("allow", match.allow);
  return refused;
}

Reply Routes::answer(const Request& request, const Guard& guard) const {
  const net::RouteMatch match = table_.match(request.method, request.path);
  if (std::optional<Reply> refusal = refuse(request, match, guard)) return *std::move(refusal);
  return match.route->plain(request);
}

std::string Routes::listing() const {
  std::size_t width = 0;
  for (const auto& [name, page] : pages_) width = std::max(width, name.size());
  std::string text;
  for (const auto& [name, page] : pages_) {
    text += fmt::format("{:<{}}  {}\n", name, width, page.meaning);
  }
  return text;
}

}  // namespace sluice::admin

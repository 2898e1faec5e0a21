#include "frontend/admin/routes.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace sluice::admin {

void Routes::add(std::string_view method, std::string_view path, Access access,
                 std::string_view meaning, Handler handler) {
  Path& added = paths_[std::string{path}];
  added.access = access;
  added.meaning = meaning;
  added.by_method.emplace(method, std::move(handler));
}

std::optional<Reply> Routes::refuse(const Request& request, const Guard& guard) const {
  const auto path = paths_.find(request.path);
  const bool is_open = path != paths_.end() && path->second.access == Access::open;
  if (!is_open) {
    if (std::optional<Reply> refusal = guard.refuse(request)) return refusal;
  }
  if (path == paths_.end()) return problem(404, "There is nothing here; / lists what there is.");
  if (path->second.by_method.contains(method_of(request))) return std::nullopt;
  Reply refused = problem(405, "This method is not known here.");
  refused.allow = methods_of(path->second);
  return refused;
}

Reply Routes::answer(const Request& request, const Guard& guard) const {
  if (std::optional<Reply> refusal = refuse(request, guard)) return *std::move(refusal);
  return paths_.find(request.path)->second.by_method.find(method_of(request))->second(request);
}

std::string Routes::methods_of(const Path& path) {
  std::string methods;
  for (const auto& [method, handler] : path.by_method) {
    methods += fmt::format("{}{}", methods.empty() ? "" : ", ", method);
    if (method == "GET") methods += ", HEAD";
  }
  return methods;
}

std::string Routes::listing() const {
  std::size_t width = 0;
  for (const auto& [name, path] : paths_) width = std::max(width, name.size());
  std::string text;
  for (const auto& [name, path] : paths_) {
    text += fmt::format("{:<{}}  {}\n", name, width, path.meaning);
  }
  return text;
}

}  // namespace sluice::admin

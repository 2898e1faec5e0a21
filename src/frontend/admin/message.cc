#include "frontend/admin/message.h"

#include "frontend/answers.h"
#include "frontend/problem.h"
#include "net/http/status_text.h"

#include <algorithm>
#include <array>
#include <utility>

namespace sluice::admin {

std::optional<std::string_view> Request::header(std::string_view name) const noexcept {
  const auto found = std::ranges::find_if(
      headers, [name](const HeaderView& one) { return equals_ignoring_case(one.name, name); });
  return found != headers.end() ? std::optional{found->value} : std::nullopt;
}

bool Request::asks_for(std::string_view word) const noexcept {
  std::string_view rest = query;
  while (!rest.empty()) {
    const std::string_view pair = rest.substr(0, rest.find('&'));
    if (pair.substr(0, pair.find('=')) == word) return true;
    rest.remove_prefix(std::min(pair.size() + 1, rest.size()));
  }
  return false;
}

Reply plain(std::string body) { return {.body = std::move(body)}; }

Reply json(std::string body) {
  return {.content_type = "application/json", .body = std::move(body)};
}

Reply problem(std::uint16_t status, std::string_view detail) {
  std::array<char, frontend::kProblemBytesMax> room;
  const std::string_view document =
      frontend::write_problem(room, {.type = frontend::problem_type(status),
                                     .title = net::reason_phrase(status),
                                     .status = status,
                                     .detail = detail.substr(0, frontend::kDetailBytesMax)});
  return {.status = status,
          .content_type = std::string{frontend::kProblemContentType},
          .body = std::string{document} + "\n"};
}

}  // namespace sluice::admin

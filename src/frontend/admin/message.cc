#include "frontend/admin/message.h"

#include "frontend/responses/answers.h"
#include "frontend/responses/problem.h"
#include "net/http/status_text.h"

#include <array>
#include <utility>

namespace sluice::admin {

Reply plain(std::string body) { return net::text_response(200, std::move(body)); }

Reply json(std::string body) {
  return {
      .status = 200, .headers = {{"content-type", "application/json"}}, .body = std::move(body)};
}

Reply problem(std::uint16_t status, std::string_view detail) {
  std::array<char, frontend::kProblemBytesMax> room;
  const std::string_view document =
      frontend::write_problem(room, {.type = frontend::problem_type(status),
                                     .title = net::reason_phrase(status),
                                     .status = status,
                                     .detail = detail.substr(0, frontend::kDetailBytesMax)});
  return {.status = status,
          .headers = {{"content-type", std::string{frontend::kProblemContentType}}},
          .body = std::string{document} + "\n"};
}

}  // namespace sluice::admin

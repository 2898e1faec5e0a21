#include "net/http/http_response.h"

#include "net/http/characters.h"
#include "net/http/known_header.h"
#include <sluice/request.h>

#include <algorithm>

namespace sluice::net {
namespace {

auto find_header(const HttpHeaders& headers, std::string_view name) noexcept {
  return std::ranges::find_if(
      headers, [name](const auto& one) { return equals_ignoring_case(one.first, name); });
}

}  // namespace

std::string_view HttpResponse::header(std::string_view name) const noexcept {
  const auto found = find_header(headers, name);
  return found != headers.end() ? std::string_view{found->second} : std::string_view{};
}

HttpResponse text_response(std::uint16_t status, std::string body) {
  return {.status = status,
          .headers = {{"content-type", "text/plain; charset=utf-8"}},
          .body = std::move(body)};
}

bool has_header(const HttpHeaders& headers, std::string_view name) noexcept {
  return find_header(headers, name) != headers.end();
}

bool is_stated_by_writer(std::string_view name) noexcept {
  return is_token(name) && known_header(name) != KnownHeader::other;
}

}  // namespace sluice::net

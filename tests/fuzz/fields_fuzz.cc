// A cookie is part of what was sent; a query field is what an obvious decoder makes of it.
//
// The input's first line is the name, the rest the cookies or the query.

#include "identity/fields.h"

#include "base/characters.h"
#include "fuzz.h"

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace {

using sluice::fuzz::expect;

std::string decoded(std::string_view text) {
  std::string plain;
  while (!text.empty()) {
    if (const auto c = sluice::decode_percent(text)) {
      plain += *c;
      text.remove_prefix(3);
    } else {
      plain += text.front() == '+' ? ' ' : text.front();
      text.remove_prefix(1);
    }
  }
  return plain;
}

std::optional<std::string> obvious(std::string_view query, std::string_view name) {
  while (!query.empty()) {
    const std::string_view pair = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), pair.size() + 1));
    const std::size_t equals = pair.find('=');
    if (pair.empty() || decoded(pair.substr(0, equals)) != name) continue;
    return equals == std::string_view::npos ? "" : decoded(pair.substr(equals + 1));
  }
  return std::nullopt;
}

void check_cookie(std::string_view line, std::string_view name) {
  const std::array headers{sluice::HeaderView{"cookie", line}};
  const auto value = sluice::identity::find_cookie(headers, name);
  if (!value) return;
  expect(value->empty() || (value->data() >= line.data() &&
                            value->data() + value->size() <= line.data() + line.size()),
         "a cookie is part of its line");
  expect(value->find(';') == std::string_view::npos, "a cookie ends at a semicolon");
}

void check_query(std::string_view query, std::string_view name) {
  std::array<char, 256> scratch{};
  const auto value = sluice::identity::find_query_field(query, name, scratch);
  const auto expected = obvious(query, name);
  if (value) {
    expect(expected == *value, "a field is decoded as obvious code would");
  } else {
    expect(!expected || expected->size() > scratch.size(), "a field that fits is found");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string input{data, data + size};
  const std::string_view text{input};
  const std::string_view name = text.substr(0, text.find('\n'));
  const std::string_view rest = text.substr(std::min(text.size(), name.size() + 1));
  check_cookie(rest, name);
  check_query(rest, name);
  return 0;
}

// For tests: decided requests, and what is written about them, read back.
#pragma once

#include "engine/engine_fixture.h"
#include "net/http/head_writer.h"
#include "net/http/response_parser.h"

#include <gtest/gtest.h>

#include <array>
#include <cctype>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace sluice::frontend::fixture {

// ---- structured fields (RFC 9651), as far as rate limits need them ------------------------------
//
// Written from the RFC, strictly: whatever it does not allow throws.

using SfValue = std::variant<std::int64_t, std::string>;

struct SfItem {
  SfValue value;
  std::map<std::string, SfValue> parameters;
  bool is_bytes = false;

  [[nodiscard]] std::int64_t number(const std::string& name) const {
    return std::get<std::int64_t>(parameters.at(name));
  }
  [[nodiscard]] const std::string& name() const { return std::get<std::string>(value); }
};

class SfParser {
 public:
  explicit SfParser(std::string_view text) : rest_(text) {}

  std::vector<SfItem> list() {
    std::vector<SfItem> items;
    skip_spaces();
    while (!rest_.empty()) {
      items.push_back(item());
      skip_spaces();
      if (rest_.empty()) break;
      if (take() != ',') throw std::runtime_error{"no comma between items"};
      skip_spaces();
      if (rest_.empty()) throw std::runtime_error{"a comma at the end"};
    }
    return items;
  }

  std::map<std::string, SfItem> dictionary() {
    std::map<std::string, SfItem> members;
    while (!rest_.empty()) {
      const std::string name = key();
      if (take() != '=') throw std::runtime_error{"a member without a value"};
      members[name] = item();
      skip_spaces();
      if (rest_.empty()) break;
      if (take() != ',') throw std::runtime_error{"no comma between members"};
      skip_spaces();
    }
    return members;
  }

 private:
  char take() {
    if (rest_.empty()) throw std::runtime_error{"it ends too early"};
    const char c = rest_.front();
    rest_.remove_prefix(1);
    return c;
  }
  void skip_spaces() {
    while (!rest_.empty() && (rest_.front() == ' ' || rest_.front() == '\t')) take();
  }

  std::string key() {
    std::string name;
    while (!rest_.empty() && (std::islower(static_cast<unsigned char>(rest_.front())) != 0 ||
                              rest_.front() == '-' || rest_.front() == '_')) {
      name += take();
    }
    if (name.empty()) throw std::runtime_error{"no key"};
    return name;
  }

  SfItem item() {
    SfItem item{.value = bare()};
    while (!rest_.empty() && rest_.front() == ';') {
      take();
      const std::string name = key();
      if (take() != '=') throw std::runtime_error{"a parameter without a value"};
      if (!item.parameters.emplace(name, bare()).second) throw std::runtime_error{"twice"};
    }
    return item;
  }

  SfValue bare() {
    if (rest_.empty()) throw std::runtime_error{"no value"};
    if (rest_.front() == '"') return string();
    if (rest_.front() == ':') return bytes();
    return integer();
  }

  std::int64_t integer() {
    std::string digits;
    while (!rest_.empty() && std::isdigit(static_cast<unsigned char>(rest_.front())) != 0) {
      digits += take();
    }
    if (digits.empty() || digits.size() > 15) throw std::runtime_error{"no integer"};
    return std::stoll(digits);
  }

  std::string string() {
    take();
    std::string text;
    while (true) {
      char c = take();
      if (c == '"') return text;
      if (c == '\\') {
        c = take();
        if (c != '"' && c != '\\') throw std::runtime_error{"an unknown escape"};
      } else if (c < 0x20 || c == 0x7f) {
        throw std::runtime_error{"a character that may not be there"};
      }
      text += c;
    }
  }

  std::string bytes() {
    take();
    std::string text;
    for (char c = take(); c != ':'; c = take()) text += c;
    if (text.size() % 4 != 0) throw std::runtime_error{"no base64"};
    return text;
  }

  std::string_view rest_;
};

// ---- heads ------------------------------------------------------------------------------------

// A head that was written, read by our own strict parser.
struct Head {
  std::uint16_t status = 0;
  std::vector<std::pair<std::string, std::string>> headers;

  // All lines of that name, joined as lists are.
  [[nodiscard]] std::string get(std::string_view name) const {
    std::string joined;
    for (const auto& [one, value] : headers) {
      if (equals_ignoring_case(one, name)) joined += (joined.empty() ? "" : ", ") + value;
    }
    return joined;
  }
  [[nodiscard]] bool has(std::string_view name) const {
    for (const auto& header : headers) {
      if (equals_ignoring_case(header.first, name)) return true;
    }
    return false;
  }
  [[nodiscard]] std::vector<SfItem> list(std::string_view name) const {
    return SfParser{get(name)}.list();
  }
};

inline Head read_head(std::string_view bytes) {
  std::array<HeaderView, 128> room;
  net::ResponseParser parser{room};
  const net::HeadParse parse = parser.parse(bytes);
  EXPECT_EQ(parse.state, net::HeadParse::State::complete) << parse.fault.why << "\n" << bytes;
  Head head{.status = parser.head().status};
  for (const HeaderView& header : parser.head().headers) {
    head.headers.emplace_back(header.name, header.value);
  }
  return head;
}

// What `write` adds to a head.
template <class Write>
Head written_head(Write&& write) {
  std::array<char, 32768> room;
  net::HeadWriter writer{room};
  write(writer);
  const Result<std::string_view> bytes = writer.finish();
  EXPECT_TRUE(bytes) << bytes.error().where;
  return read_head(bytes.value_or("HTTP/1.1 500 \r\n\r\n"));
}

// ---- decided requests ---------------------------------------------------------------------------

// Decides with the real engine over the real table; an op is settled when the next one is asked.
class FrontendFixture : public engine::EngineFixture {
 protected:
  const engine::Op& decided(const Sent& sent = {}) {
    settle();
    EXPECT_EQ(decide(op_, sent), store::Completion::now);
    is_pending_ = true;
    return op_;
  }
  // The last of several requests in a row.
  const engine::Op& decided_after(int requests, const Sent& sent = {}) {
    for (int i = 0; i < requests; ++i) (void)decided(sent);
    return decided(sent);
  }
  void settle() {
    if (is_pending_) worker_->settle(op_, nullptr, now_);
    is_pending_ = false;
  }
  void TearDown() override { settle(); }

  bool is_pending_ = false;
};

}  // namespace sluice::frontend::fixture

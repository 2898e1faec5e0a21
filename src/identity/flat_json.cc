#include "identity/flat_json.h"

#include "base/characters.h"
#include "base/text.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace sluice::identity {

// Recursive descent; the depth is bounded. Each function reads one thing at the cursor and returns
// whether that worked; the first fault stays.
class FlatJsonParser {
 public:
  FlatJsonParser(FlatJson& into, std::string_view text, const JsonLimits& limits)
      : into_(into), text_(text), limits_(limits) {}

  JsonFault parse() {
    if (text_.size() > limits_.bytes_max) return {"the text is too long", 0};
    skip_space();
    const bool read = peek() == '{' ? object(1) : fail("the outermost value must be an object");
    if (read) {
      skip_space();
      if (at_ != text_.size()) (void)fail("something follows the outermost object");
    }
    return fault_;
  }

 private:
  [[nodiscard]] bool fail(const char* what) {
    if (fault_.ok()) fault_ = {what, at_};
    return false;
  }
  [[nodiscard]] char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  [[nodiscard]] bool take(char c) {
    if (peek() != c || at_ == text_.size()) return false;
    ++at_;
    return true;
  }
  void skip_space() {
    while (at_ < text_.size() &&
           (is_space(text_[at_]) || text_[at_] == '\n' || text_[at_] == '\r')) {
      ++at_;
    }
  }

  // ---- structure ------------------------------------------------------------------------------

  bool object(unsigned depth) {
    if (depth > limits_.depth_max) return fail("nested too deeply");
    ++at_;
    skip_space();
    if (take('}')) return true;
    do {
      skip_space();
      const std::size_t outer = path_.size();
      if (!member_name() || !value(depth)) return false;
      path_.resize(outer);
      skip_space();
    } while (take(','));
    return take('}') || fail("a comma or } is missing");
  }

  bool array(unsigned depth) {
    if (depth > limits_.depth_max) return fail("nested too deeply");
    ++at_;
    skip_space();
    if (take(']')) return true;
    std::size_t index = 0;
    do {
      const std::size_t outer = path_.size();
      path_ += '.';
      path_ += std::to_string(index++);
      if (!value(depth)) return false;
      path_.resize(outer);
      skip_space();
    } while (take(','));
    return take(']') || fail("a comma or ] is missing");
  }

  bool member_name() {
    if (peek() != '"') return fail("a member's name is missing");
    if (!path_.empty()) path_ += '.';
    const std::size_t before = path_.size();
    if (!string(path_)) return false;
    if (path_.size() == before) return fail("a member's name is empty");
    skip_space();
    return take(':') || fail("a colon is missing");
  }

  bool value(unsigned depth) {
    skip_space();
    switch (peek()) {
      case '{': return add(JsonKind::object, {}) && object(depth + 1);
      case '[': return add(JsonKind::array, {}) && array(depth + 1);
      case '"': return text_value();
      case 't': return word("true", JsonKind::boolean);
      case 'f': return word("false", JsonKind::boolean);
      case 'n': return word("null", JsonKind::null);
      default: return number();
    }
  }

  bool add(JsonKind kind, std::string_view value) {
    // A long name above many members would be written again for each of them.
    const std::size_t memory_max = 4 * limits_.bytes_max;
    if (into_.entries_.size() == limits_.members_max) return fail("too many members");
    if (into_.text_.size() + path_.size() + value.size() > memory_max) {
      return fail("the names are too long");
    }
    into_.entries_.push_back(
        {.name_at = static_cast<std::uint32_t>(into_.text_.size()),
         .name_size = static_cast<std::uint32_t>(path_.size()),
         .value_at = static_cast<std::uint32_t>(into_.text_.size() + path_.size()),
         .value_size = static_cast<std::uint32_t>(value.size()),
         .kind = kind});
    into_.text_ += path_;
    into_.text_ += value;
    return true;
  }

  // ---- scalars --------------------------------------------------------------------------------

  bool text_value() {
    scalar_.clear();
    return string(scalar_) && add(JsonKind::text, scalar_);
  }

  bool word(std::string_view expected, JsonKind kind) {
    if (text_.substr(at_, expected.size()) != expected) return fail("not a value");
    at_ += expected.size();
    return add(kind, expected);
  }

  bool digits() {
    const std::size_t begin = at_;
    while (is_digit(peek())) ++at_;
    return at_ > begin || fail("not a value");
  }

  bool number() {
    const std::size_t begin = at_;
    (void)take('-');
    const std::size_t first = at_;
    if (!digits()) return false;
    if (text_[first] == '0' && at_ - first > 1) return fail("a number begins with a zero");
    if (take('.') && !digits()) return false;
    if (take('e') || take('E')) {
      if (!take('+')) (void)take('-');
      if (!digits()) return false;
    }
    return add(JsonKind::number, text_.substr(begin, at_ - begin));
  }

  bool string(std::string& out) {
    ++at_;
    while (at_ < text_.size()) {
      const auto byte = static_cast<unsigned char>(text_[at_]);
      if (byte == '"') return ++at_, true;
      if (byte < 0x20) return fail("a control character in a text");
      if (byte == '\\') {
        if (!escape(out)) return false;
      } else if (!plain(out)) {
        return false;
      }
    }
    return fail("a text does not end");
  }

  bool escape(std::string& out) {
    constexpr std::string_view kLetters = R"("\/bfnrt)";
    constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
    ++at_;
    if (take('u')) return unicode(out);
    const std::size_t which =
        at_ < text_.size() ? kLetters.find(text_[at_]) : std::string_view::npos;
    if (which == std::string_view::npos) return fail("an unknown escape");
    out += kMeanings[which];
    ++at_;
    return true;
  }

  bool four_digits(std::uint32_t& code) {
    code = 0;
    for (int i = 0; i < 4; ++i) {
      const unsigned digit = hex_digit(peek());
      if (digit > 15) return fail("not four hexadecimal digits");
      code = code << 4U | digit;
      ++at_;
    }
    return true;
  }

  bool unicode(std::string& out) {
    std::uint32_t code = 0;
    if (!four_digits(code)) return false;
    if (code == 0) return fail("a zero character in a text");
    if (code >= 0xdc00 && code <= 0xdfff) return fail("half a surrogate pair");
    if (code >= 0xd800 && code <= 0xdbff) {
      std::uint32_t second = 0;
      if (!take('\\') || !take('u')) return fail("half a surrogate pair");
      if (!four_digits(second)) return false;
      if (second < 0xdc00 || second > 0xdfff) return fail("half a surrogate pair");
      code = 0x10000 + ((code - 0xd800) << 10U) + (second - 0xdc00);
    }
    append_utf8(out, code);
    return true;
  }

  static void append_utf8(std::string& out, std::uint32_t code) {
    if (code < 0x80) {
      out += static_cast<char>(code);
      return;
    }
    const unsigned more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    constexpr std::array<unsigned, 4> kFirst{0, 0xc0, 0xe0, 0xf0};
    out += static_cast<char>(kFirst[more] | code >> 6 * more);
    for (unsigned i = more; i-- > 0;) {
      out += static_cast<char>(0x80U | (code >> 6 * i & 0x3fU));
    }
  }

  // One character that stands for itself, of one to four bytes.
  bool plain(std::string& out) {
    const auto first = static_cast<unsigned char>(text_[at_]);
    std::size_t length = 1;
    std::uint32_t code = first;
    if (first >= 0x80) {
      if ((first & 0xe0U) == 0xc0)
        length = 2, code = first & 0x1fU;
      else if ((first & 0xf0U) == 0xe0)
        length = 3, code = first & 0x0fU;
      else if ((first & 0xf8U) == 0xf0)
        length = 4, code = first & 0x07U;
      else
        return fail("not UTF-8");
    }
    if (text_.size() - at_ < length) return fail("not UTF-8");
    for (std::size_t i = 1; i < length; ++i) {
      const auto next = static_cast<unsigned char>(text_[at_ + i]);
      if ((next & 0xc0U) != 0x80) return fail("not UTF-8");
      code = code << 6U | (next & 0x3fU);
    }
    constexpr std::array<std::uint32_t, 5> kShortest{0, 0, 0x80, 0x800, 0x10000};
    const bool surrogate = code >= 0xd800 && code <= 0xdfff;
    if (code < kShortest[length] || code > 0x10ffff || surrogate) return fail("not UTF-8");
    out += text_.substr(at_, length);
    at_ += length;
    return true;
  }

  FlatJson& into_;
  std::string_view text_;
  const JsonLimits& limits_;
  std::size_t at_ = 0;
  std::string path_;    // of the member that is being read
  std::string scalar_;  // reused for every text
  JsonFault fault_;
};

JsonFault FlatJson::parse(std::string_view text, const JsonLimits& limits) {
  const JsonFault fault = FlatJsonParser{*this, text, limits}.parse();
  if (!fault.ok()) {
    entries_.clear();
    text_.clear();
    return fault;
  }
  std::sort(entries_.begin(), entries_.end(),
            [&](const Entry& a, const Entry& b) { return name_of(a) < name_of(b); });
  const auto twice =
      std::adjacent_find(entries_.begin(), entries_.end(),
                         [&](const Entry& a, const Entry& b) { return name_of(a) == name_of(b); });
  if (twice != entries_.end()) {
    entries_.clear();
    return {"a member stands there twice", 0};
  }
  return {};
}

std::optional<FlatJson::Member> FlatJson::member(std::string_view name) const noexcept {
  const auto found = std::lower_bound(
      entries_.begin(), entries_.end(), name,
      [&](const Entry& entry, std::string_view wanted) { return name_of(entry) < wanted; });
  if (found == entries_.end() || name_of(*found) != name) return std::nullopt;
  return at(static_cast<std::size_t>(found - entries_.begin()));
}

FlatJson::Member FlatJson::at(std::size_t index) const noexcept {
  const Entry& entry = entries_[index];
  return {.name = name_of(entry),
          .value = std::string_view{text_}.substr(entry.value_at, entry.value_size),
          .kind = entry.kind};
}

std::optional<FlatJson::Member> FlatJson::element(std::string_view list,
                                                  std::size_t index) const noexcept {
  constexpr std::size_t kDigits = 20;
  std::array<char, 128 + 1 + kDigits> name{};
  if (list.size() > name.size() - 1 - kDigits) return std::nullopt;
  char* end = std::copy(list.begin(), list.end(), name.data());
  *end++ = '.';
  end = std::to_chars(end, name.data() + name.size(), index).ptr;
  return member({name.data(), static_cast<std::size_t>(end - name.data())});
}

std::string_view FlatJson::find(std::string_view name) const noexcept {
  const std::optional<Member> found = member(name);
  return found && found->kind != JsonKind::null ? found->value : std::string_view{};
}

}  // namespace sluice::identity

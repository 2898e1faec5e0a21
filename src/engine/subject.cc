#include "engine/subject.h"

#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace sluice::engine {
namespace {

constexpr std::array<std::pair<std::string_view, Subject::Kind>, 4> kKinds{
    {{"ip", Subject::Kind::ip},
     {"api_key", Subject::Kind::api_key},
     {"user", Subject::Kind::user},
     {"tenant", Subject::Kind::tenant}}};

}  // namespace

std::string_view to_string(Subject::Kind kind) noexcept {
  return kKinds[static_cast<std::size_t>(kind)].first;
}

Parsed<Subject> Subject::parse(std::string_view written) {
  const std::size_t equals = written.find('=');
  const auto found = std::ranges::find(kKinds, written.substr(0, equals),
                                       &std::pair<std::string_view, Kind>::first);
  if (equals == std::string_view::npos || found == kKinds.end()) {
    return mistake(fmt::format("{} names no client", quoted(written)),
                   "write ip=ADDRESS or ip=RANGE, api_key=NAME, user=NAME or tenant=NAME");
  }
  const std::string_view value = written.substr(equals + 1);
  if (value.empty()) {
    return mistake(fmt::format("{} has no value", quoted(written)), "write it behind the =");
  }
  Subject subject{.kind = found->second, .range = {}, .text = {}};
  if (subject.kind != Kind::ip) {
    subject.text = value;
    return subject;
  }
  const std::optional<IpRange> range = IpRange::parse(value);
  if (!range) {
    return mistake(
        fmt::format("{} is neither an address nor a range", quoted(value)),
        "write 203.0.113.7, 10.0.0.0/8 or 2001:db8::/32, without bits behind the prefix");
  }
  subject.range = *range;
  return subject;
}

std::string Subject::written() const {
  return fmt::format("{}={}", to_string(kind), kind == Kind::ip ? range.text() : text);
}

void SubjectIndex::add(const Subject& subject, std::uint32_t number) {
  filed_[static_cast<std::size_t>(subject.kind)] = true;
  if (subject.kind != Subject::Kind::ip) {
    texts_[static_cast<std::size_t>(subject.kind)][subject.text].push_back(number);
    return;
  }
  ranges_[subject.range].push_back(number);
  std::vector<std::uint8_t>& lengths = subject.range.first.is_v4 ? v4_lengths_ : v6_lengths_;
  const auto length = static_cast<std::uint8_t>(subject.range.prefix_bits);
  const auto at = std::ranges::lower_bound(lengths, length, std::greater{});
  if (at == lengths.end() || *at != length) lengths.insert(at, length);
}

}  // namespace sluice::engine

#include "frontend/responses/rate_headers.h"

#include "base/base64.h"
#include "frontend/responses/rate_fields.h"
#include "net/http/characters.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace sluice::frontend {
namespace {

using Role = RateHeaders::Role;

// ---- the table of families --------------------------------------------------------------------

struct NamedField {
  Role role;
  const char* name;
};

struct FamilyRow {
  Family family;
  std::string_view name;
  std::vector<NamedField> fields;
};

const std::vector<FamilyRow>& table() {
  using enum Role;
  static const std::vector<FamilyRow> kTable{
      {Family::ietf_11, "ietf-11", {{policy, "RateLimit-Policy"}, {rate, "RateLimit"}}},
      {Family::ietf_next, "ietf-next", {{policy, "RateLimit-Policy"}, {rate, "RateLimit"}}},
      {Family::ietf_07, "ietf-07", {{policy, "RateLimit-Policy"}, {rate, "RateLimit"}}},
      {Family::ietf_03,
       "ietf-03",
       {{limit, "RateLimit-Limit"},
        {remaining, "RateLimit-Remaining"},
        {reset, "RateLimit-Reset"}}},
      {Family::x_ratelimit_delta,
       "x-ratelimit-delta",
       {{limit, "X-RateLimit-Limit"},
        {remaining, "X-RateLimit-Remaining"},
        {reset, "X-RateLimit-Reset"}}},
      {Family::x_ratelimit_epoch,
       "x-ratelimit-epoch",
       {{limit, "X-RateLimit-Limit"},
        {remaining, "X-RateLimit-Remaining"},
        {used, "X-RateLimit-Used"},
        {reset, "X-RateLimit-Reset"},
        {resource, "X-RateLimit-Resource"}}},
      {Family::x_rate_limit_epoch,
       "x-rate-limit-epoch",
       {{limit, "X-Rate-Limit-Limit"},
        {remaining, "X-Rate-Limit-Remaining"},
        {reset, "X-Rate-Limit-Reset"}}},
  };
  return kTable;
}

const FamilyRow& row_of(Family family) noexcept {
  return *std::ranges::find(table(), family, &FamilyRow::family);
}

// ---- names ------------------------------------------------------------------------------------

std::string renamed(std::string_view name, const RateHeaderOptions& options) {
  for (const auto& [from, to] : options.renamed) {
    if (equals_ignoring_case(from, name)) return to;
  }
  return std::string{name};
}

bool is_usual_name(std::string_view name) {
  return std::ranges::any_of(table(), [&](const FamilyRow& row) {
    return std::ranges::any_of(row.fields, [&](const NamedField& field) {
      return equals_ignoring_case(field.name, name);
    });
  });
}

std::optional<Diagnostic> mistake_in(const RateHeaderOptions& options) {
  for (const auto& [from, to] : options.renamed) {
    if (!is_usual_name(from)) {
      return Diagnostic{fmt::format("{} is no header that could be renamed", quoted(from)),
                        "write the usual name first, as in RateLimit-Limit"};
    }
    if (!to.empty() && !net::is_token(to)) {
      return Diagnostic{fmt::format("{} is no name of a header", quoted(to)),
                        "use letters, digits and dashes; nothing leaves the header out"};
    }
  }
  return std::nullopt;
}

std::optional<Diagnostic> clash_in(std::span<const RateHeaders::FamilyFields> families) {
  std::vector<std::pair<std::string_view, Family>> taken;
  for (const RateHeaders::FamilyFields& one : families) {
    for (const RateHeaders::Field& field : one.fields) {
      if (field.name.empty()) continue;
      const auto other = std::ranges::find_if(
          taken, [&](const auto& name) { return equals_ignoring_case(name.first, field.name); });
      if (other != taken.end()) {
        return Diagnostic{fmt::format("{} and {} both write {}", to_string(other->second),
                                      to_string(one.family), field.name),
                          "leave one of them out, or rename the header"};
      }
      taken.emplace_back(field.name, one.family);
    }
  }
  return std::nullopt;
}

constexpr std::size_t kPartitionBytes = 12;  // enough to tell clients apart: 16 letters
constexpr std::size_t kPartitionLetters = base64_encoded_size(kPartitionBytes);

}  // namespace

std::string_view to_string(Family family) noexcept { return row_of(family).name; }

std::optional<Family> family_named(std::string_view name) noexcept {
  const auto row = std::ranges::find(table(), name, &FamilyRow::name);
  if (row == table().end()) return std::nullopt;
  return row->family;
}

// ---- making -----------------------------------------------------------------------------------

Parsed<RateHeaders> RateHeaders::create(const RateHeaderOptions& options) {
  if (std::optional<Diagnostic> wrong = mistake_in(options)) {
    return tl::unexpected(*std::move(wrong));
  }
  RateHeaders made{options};
  if (std::optional<Diagnostic> clash = clash_in(made.families_)) {
    return tl::unexpected(*std::move(clash));
  }
  return made;
}

RateHeaders::RateHeaders(const RateHeaderOptions& options)
    : when_(options.when),
      threshold_percent_(options.threshold_percent),
      most_restrictive_only_(options.most_restrictive_only),
      shows_shadows_(options.shows_shadows) {
  if (!options.partition_secret.empty()) partition_secret_.emplace(options.partition_secret);
  for (const Family family : options.families) {
    FamilyFields& made = families_.emplace_back();
    made.family = family;
    for (const NamedField& field : row_of(family).fields) {
      made.fields.push_back({.role = field.role, .name = renamed(field.name, options)});
      if (made.fields.back().name.empty()) continue;
      exposed_ += made.fields.back().name + ", ";
    }
  }
  exposed_ += "Retry-After";
}

// ---- beside the origin's ----------------------------------------------------------------------

FamilySet RateHeaders::all() const noexcept {
  FamilySet set;
  for (const FamilyFields& one : families_) set.add(one.family);
  return set;
}

FamilySet RateHeaders::merge(const engine::Op& op, std::span<const HeaderView> origin,
                             const Context& context, net::HeaderSet& left_out) const noexcept {
  FamilySet set;
  if (!is_wanted(op, context)) return set;
  const std::optional<LimitView> tightest = LimitViews{op, shows_shadows_}.tightest();
  if (!tightest) return set;
  for (const FamilyFields& one : families_) {
    switch (compare_with_origin(one, tightest->remaining, origin)) {
      case Beside::origin_alone: break;
      case Beside::both: set.add(one.family); break;
      case Beside::ours_alone:
        set.add(one.family);
        leave_out(one, origin, left_out);
        break;
    }
  }
  return set;
}

// ---- writing ----------------------------------------------------------------------------------

bool RateHeaders::is_wanted(const engine::Op& op, const Context& context) const noexcept {
  const bool is_refusal = op.action != engine::Action::pass;
  const unsigned kind = context.status / 100U;
  if (kind != 2 && kind != 4 && (kind != 5 || !is_refusal)) return false;
  if (is_refusal || when_ == Emission::always) return true;
  if (when_ == Emission::on_rejection) return false;
  bool is_below = false;
  LimitViews{op, shows_shadows_}.for_each([&](const LimitView& view) {
    is_below |= view.remaining * 100 < view.capacity * threshold_percent_;
  });
  return is_below;
}

void RateHeaders::write(net::HeadWriter& writer, const engine::Op& op, const Context& context,
                        FamilySet families) const noexcept {
  if (families_.empty() || !is_wanted(op, context)) return;
  std::array<char, kPartitionLetters> letters;
  std::string_view partition;
  if (partition_secret_ && !context.client.empty()) {
    const crypto::Sha256Bytes hash = (*partition_secret_)(context.client);
    const std::string_view bytes{reinterpret_cast<const char*>(hash.data()), kPartitionBytes};
    partition = encode_base64_unpadded(bytes, letters);
  }
  for (const FamilyFields& one : families_) {
    if (families.contains(one.family)) write_family(writer, one, op, context, partition);
  }
  if (context.is_cors) writer.own_header("Access-Control-Expose-Headers", exposed_);
}

void RateHeaders::write_family(net::HeadWriter& writer, const FamilyFields& fields,
                               const engine::Op& op, const Context& context,
                               std::string_view partition) const noexcept {
  LimitViews views{op, shows_shadows_};
  const bool shows_all = is_list_of_names(fields.family) && !most_restrictive_only_;
  const std::optional<LimitView> tightest = shows_all ? std::nullopt : views.tightest();
  if (!shows_all && !tightest) return;
  const FieldStyle style{.family = fields.family, .now = context.now, .partition = partition};
  for (const Field& field : fields.fields) {
    if (field.name.empty()) continue;
    if (field.role != Role::policy && field.role != Role::rate) {
      write_number(writer, field, *tightest, style);
      continue;
    }
    ListLine line{writer, field.name};
    const auto add = [&](const LimitView& view) { add_item(line, field.role, view, style); };
    if (most_restrictive_only_ || shows_one(fields.family, field.role)) {
      add(*tightest);
    } else {
      views.for_each(add);
    }
    line.finish();
  }
}

}  // namespace sluice::frontend

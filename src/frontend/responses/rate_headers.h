// The headers that tell clients where they stand.
//
// Several families exist, older and newer, and clients know one or the other; any number of them
// can be on as long as no two write the same header. Made once from configuration; immutable, so
// workers share it. Writing allocates nothing.
#pragma once

#include "crypto/sha256.h"
#include "engine/op.h"
#include "frontend/responses/limit_view.h"
#include "net/http/head_writer.h"
#include "net/http/message.h"
#include <sluice/diagnostic.h>
#include <sluice/request.h>
#include <sluice/time.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::frontend {

enum class Family : std::uint8_t {
  ietf_11,             // RateLimit-Policy and RateLimit, as of draft 11
  ietf_next,           // the same with the names of parameters that the next draft is to have
  ietf_07,             // RateLimit: limit=100, remaining=50, reset=5
  ietf_03,             // RateLimit-Limit, -Remaining, -Reset, in seconds from now
  x_ratelimit_delta,   // X-RateLimit-..., in seconds from now
  x_ratelimit_epoch,   // X-RateLimit-..., in seconds since 1970, with -Used and -Resource
  x_rate_limit_epoch,  // X-Rate-Limit-..., in seconds since 1970
};
inline constexpr std::size_t kFamilies = 7;

// As configuration spells it: ietf-11. Nothing: there is none of that name.
[[nodiscard]] std::string_view to_string(Family family) noexcept;
[[nodiscard]] std::optional<Family> family_named(std::string_view name) noexcept;

enum class Emission : std::uint8_t {
  always,
  on_rejection,
  below_threshold,  // and on rejection
};

struct RateHeaderOptions {
  std::vector<Family> families{Family::ietf_11};  // none: no headers but Retry-After
  Emission when = Emission::always;
  unsigned threshold_percent = 20;     // of any limit, for Emission::below_threshold
  bool most_restrictive_only = false;  // of several limits, in the families that can show several
  bool shows_shadows = false;          // rules that only tell
  std::string partition_secret;        // not empty: `pk`, a hash of who is asking
  // From the usual name of a header to another; to nothing: it is left out.
  std::vector<std::pair<std::string, std::string>> renamed;
};

class FamilySet {
 public:
  constexpr void add(Family family) noexcept { bits_ |= bit(family); }
  [[nodiscard]] constexpr bool contains(Family family) const noexcept {
    return (bits_ & bit(family)) != 0;
  }

 private:
  [[nodiscard]] static constexpr unsigned bit(Family family) noexcept {
    return 1U << static_cast<unsigned>(family);
  }
  unsigned bits_ = 0;
};

class RateHeaders {
 public:
  // Fails when two families would write the same header, or a name is none.
  [[nodiscard]] static Parsed<RateHeaders> create(const RateHeaderOptions& options);

  struct Context {
    // Of the answer: 2xx, 4xx and refusals have these headers. A server in trouble has nothing to
    // say of quotas, and inviting more requests to it would be the wrong word.
    std::uint16_t status = 200;
    WallTime now;
    std::string_view client;  // who is asking, for the partition key; empty: nobody is told
    bool is_cors = false;     // the request has an Origin: let scripts see the headers
  };

  // Which families to write beside what the origin wrote. Its word is replaced only by a stricter
  // one: the lines for which that holds are added to `left_out`. Lists are joined, which takes a
  // line of ours beside its own.
  [[nodiscard]] FamilySet merge(const engine::Op& op, std::span<const HeaderView> origin,
                                const Context& context, net::HeaderSet& left_out) const noexcept;
  // Whether a context should say who is asking.
  [[nodiscard]] bool tells_partitions() const noexcept { return partition_secret_.has_value(); }
  // All, for answers of our own.
  [[nodiscard]] FamilySet all() const noexcept;

  // The op is decided and not settled yet.
  void write(net::HeadWriter& writer, const engine::Op& op, const Context& context,
             FamilySet families) const noexcept;
  void write(net::HeadWriter& writer, const engine::Op& op, const Context& context) const noexcept {
    write(writer, op, context, all());
  }

  enum class Role : std::uint8_t { policy, rate, limit, remaining, reset, used, resource };
  struct Field {
    Role role = Role::rate;
    std::string name;  // empty: left out
  };
  struct FamilyFields {
    Family family = Family::ietf_11;
    std::vector<Field> fields;
  };
  [[nodiscard]] std::span<const FamilyFields> families() const noexcept { return families_; }

 private:
  explicit RateHeaders(const RateHeaderOptions& options);

  [[nodiscard]] bool is_wanted(const engine::Op& op, const Context& context) const noexcept;
  void write_family(net::HeadWriter& writer, const FamilyFields& fields, const engine::Op& op,
                    const Context& context, std::string_view partition) const noexcept;

  Emission when_;
  unsigned threshold_percent_;
  bool most_restrictive_only_;
  bool shows_shadows_;
  std::optional<crypto::HmacSecret> partition_secret_;
  std::vector<FamilyFields> families_;
  std::string exposed_;  // all names, for Access-Control-Expose-Headers
};

}  // namespace sluice::frontend

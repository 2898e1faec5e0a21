// The headers that tell clients their limits and usage.
//
// There are several families, older and newer, and each client knows some. Any number can be on as
// long as no two write the same header. Made once from the configuration; immutable, so workers
// share it. Writing does not allocate.
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
  ietf_next,           // the same with the parameter names of the next draft
  ietf_07,             // RateLimit: limit=100, remaining=50, reset=5
  ietf_03,             // RateLimit-Limit, -Remaining, -Reset, in seconds from now
  x_ratelimit_delta,   // X-RateLimit-..., in seconds from now
  x_ratelimit_epoch,   // X-RateLimit-..., in seconds since 1970, with -Used and -Resource
  x_rate_limit_epoch,  // X-Rate-Limit-..., in seconds since 1970
};
inline constexpr std::size_t kFamilies = 7;

// As spelled in the configuration: ietf-11. Nothing: there is none of that name.
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
  bool most_restrictive_only = false;  // of several limits, in families that can show several
  bool shows_shadows = false;          // shadow (log only) rules
  std::string partition_secret;        // not empty: `pk`, a hash of the client
  // From the usual name of a header to another; an empty one omits it.
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
  // Fails if two families would write the same header, or a name is invalid.
  [[nodiscard]] static Parsed<RateHeaders> create(const RateHeaderOptions& options);

  struct Context {
    // Of the response: 2xx, 4xx and rejections have these headers. A failing server knows no
    // quotas, and must not invite more requests.
    std::uint16_t status = 200;
    WallTime now;
    std::string_view client;  // for the partition key; empty: no `pk`
    bool is_cors = false;     // the request has an Origin: let scripts see the headers
  };

  // The families to write beside the origin's headers. Only a stricter value replaces the origin's:
  // the replaced lines are added to `left_out`. Lists are joined, by the gateway's line beside the
  // origin's.
  [[nodiscard]] FamilySet merge(const engine::Op& op, std::span<const HeaderView> origin,
                                const Context& context, net::HeaderSet& left_out) const noexcept;
  // Whether a context should name the client.
  [[nodiscard]] bool tells_partitions() const noexcept { return partition_secret_.has_value(); }
  // All, for the gateway's own responses.
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
    std::string name;  // empty: omitted
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

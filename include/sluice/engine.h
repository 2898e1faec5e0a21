// The whole engine, embedded: rules from a file, requests in, decisions out.
//
//     auto engine = sluice::Engine::from_file("sluice.yaml").value();
//     sluice::EngineWorker worker{*engine};                    // one for each thread
//
//     sluice::Admission admission = worker.decide(request);
//     if (!admission.allowed()) return reject(admission.status(), admission.decision());
//     Response response = handle(request);
//     admission.report({.status = response.status});           // for limits that count responses
//
// A request may also be checked against one rule by its name:
//
//     if (worker.is_rate_limited("create-url", {.user = "ann"})) return too_many_requests();
//
// The file is that of `sluice serve` (docs/configuration.md). The engine ignores its listeners and
// watches no file: load_file() reads it again, and the rules file that it may name. It rejects
// trees of envoyproxy/ratelimit.
#pragma once

#include <sluice/clock.h>
#include <sluice/core/step.h>
#include <sluice/decision.h>
#include <sluice/diagnostic.h>
#include <sluice/request.h>
#include <sluice/time.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sluice {

struct EngineOptions {
  const Clock* clock = nullptr;  // outlives the engine, thread-safe; null: SystemClock
  // How many EngineWorkers run in parallel. Rules with `thread_leases: true` divide their units
  // among that many. 0: one for each processor.
  unsigned workers = 0;
};

// A client that no rule counts (allow), that is rejected (deny), or that has other limits
// (override). Subjects as in the configuration: ip=10.0.0.0/8, api_key=acme-1, user=ann,
// tenant=acme.
struct ListedClient {
  enum class Kind : std::uint8_t { allow, deny, override };
  Kind kind = Kind::allow;
  std::string subject;
  std::string multiplier;           // override: "2", "0.5"
  std::optional<WallTime> expires;  // absent: never
  std::string note;                 // the reason, for operators
};

// A client that reached a limit of a rule with `block`.
struct BlockedClient {
  std::uint64_t id = 0;
  std::string rule;
  std::string who;  // "ip=203.0.113.7"
  WallTime since;
  WallTime until;
};

// Rules, clients and counts. Thread-safe.
class Engine {
 public:
  // An invalid file is rejected with all of its mistakes.
  [[nodiscard]] static Parsed<std::unique_ptr<Engine>> from_file(const std::string& file,
                                                                 const EngineOptions& options = {});
  // `name` stands for the file in messages; paths in the text are relative to the working folder.
  [[nodiscard]] static Parsed<std::unique_ptr<Engine>> from_text(std::string_view text,
                                                                 std::string_view name = "rules",
                                                                 const EngineOptions& options = {});
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  ~Engine();

  // Replaces rules and clients for all later requests; usage stays. After a mistake the old ones
  // stay. The size and file of the table do not change.
  [[nodiscard]] Parsed<void> load_file(const std::string& file);
  [[nodiscard]] Parsed<void> load_text(std::string_view text, std::string_view name = "rules");

  // ---- lists and overrides, until they expire or are removed -----------------------------------

  [[nodiscard]] Parsed<void> list(const ListedClient& client);  // replaces an entry of the subject
  bool unlist(ListedClient::Kind kind, std::string_view subject);
  [[nodiscard]] std::vector<ListedClient> listed() const;  // entries of the file included

  // ---- blocks ---------------------------------------------------------------------------------

  [[nodiscard]] std::vector<BlockedClient> blocked() const;
  bool unblock(std::uint64_t id);

 private:
  friend class EngineWorker;
  struct Inside;
  explicit Engine(std::unique_ptr<Inside> inside) noexcept;
  std::unique_ptr<Inside> inside_;
};

// The response of the upstream.
struct Response {
  std::uint16_t status = 0;
  std::optional<std::uint8_t> grpc_status;
  std::span<const HeaderView> headers;
};

// One request under the rules, from the decision to the end of the response. Movable; without a
// report its charges stay.
class Admission {
 public:
  Admission() noexcept;
  Admission(const Admission&) = delete;
  Admission& operator=(const Admission&) = delete;
  Admission(Admission&& other) noexcept;
  Admission& operator=(Admission&& other) noexcept;
  ~Admission();

  [[nodiscard]] bool allowed() const noexcept;
  [[nodiscard]] std::uint16_t status()
      const noexcept;                         // to reject with: 429, or 400, 401, 403, 503
  [[nodiscard]] bool drops() const noexcept;  // close without a response
  [[nodiscard]] std::string_view reason() const noexcept;  // limited, blocked, unmatched, ...
  // The rule that binds; empty: none does. The view is valid until the next call.
  [[nodiscard]] std::string_view rule() const noexcept;
  [[nodiscard]] const Decision& decision() const noexcept;  // of its limit

  // A queued request has waited for decision().delay and is forwarded.
  void released();
  // The client left before the request was forwarded: its charges are refunded. A turn in the
  // middle of a queue is not: the requests behind it have their release times already.
  void abandon();
  // Still in flight: leases of concurrency limits live on. Call it at half of their `slot_ttl`.
  void renew();
  // The actual cost, where it is known only at the end. A rule with `thread_leases` charges the
  // larger of the two costs.
  void correct_cost(core::Cost actual);
  // The response has arrived: `count` charges or refunds.
  void report(const Response& response);

 private:
  friend class EngineWorker;
  struct Held;
  std::unique_ptr<Held> held_;
};

// The client and its request: the values by which a rule counts `per`, chooses a tier or finds its
// cost. Values that the rule does not use can be omitted.
struct Caller {
  std::string_view domain;  // of the rule; empty: the default one
  std::string_view user;
  std::string_view api_key;
  std::string_view tenant;
  std::string_view tier;
  std::optional<IpAddress> address;  // counted where a value is missing (`on_missing: ip`)
  std::string_view country;          // two letters
  std::uint32_t asn = 0;
  std::string_view method;
  std::string_view target;                 // for path.X and query.X: /v1/users/7?plan=free
  std::span<const HeaderView> headers;     // for header.X
  std::span<const HeaderView> claims;      // for claim.X, with their names as they are
  std::span<const HeaderView> attributes;  // for attribute.X, with their names as they are
  std::span<const DescriptorEntry> descriptor;
  std::optional<core::Cost> cost;  // in place of the rule's own
};

// Decides. One thread: each has its own. Outlives its admissions; the engine outlives it.
class EngineWorker {
 public:
  explicit EngineWorker(Engine& engine);
  EngineWorker(const EngineWorker&) = delete;
  EngineWorker& operator=(const EngineWorker&) = delete;
  ~EngineWorker();

  // The request's views are not kept. Allocates only when more admissions are open at once than
  // ever before.
  [[nodiscard]] Admission decide(const RequestView& request);
  [[nodiscard]] Admission decide(const RequestView& request, Now now);

  // Many at once, each for itself; `admissions` has as many places.
  void decide(std::span<const RequestView> requests, std::span<Admission> admissions, Now now);

  // Under one rule alone, whatever its `match` says. An error where no rule has that name, or where
  // the caller has neither a value that the rule counts by nor an address to count instead.
  [[nodiscard]] Parsed<Admission> decide(std::string_view rule, const Caller& caller);
  // Charges the rule; true where it rejects, false where there is no such rule. Throws
  // std::invalid_argument where the caller lacks a value.
  [[nodiscard]] bool is_rate_limited(std::string_view rule, const Caller& caller);

 private:
  friend class Admission;
  struct Inside;
  std::unique_ptr<Inside> inside_;
};

}  // namespace sluice

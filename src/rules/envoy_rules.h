// Rules of envoyproxy/ratelimit: trees of descriptors, matched exactly as that service does.
//
// A domain is a tree. Each node has a composite, `key` or `key_value`, and a request's descriptor
// is walked one entry per level: the exact composite first, then the level's wildcards in the order
// of the file, then the key alone; never back. Only the node of the last entry provides a limit.
//
// Immutable once loaded; match() neither allocates nor locks and may run on many threads at once.
#pragma once

#include "config/diagnostics.h"
#include <sluice/request.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::rules {

// The numbers of Envoy's messages.
enum class EnvoyUnit : std::uint8_t {
  unknown = 0,
  second = 1,
  minute = 2,
  hour = 3,
  day = 4,
  month = 5,
  year = 6,
  week = 7,
};

// Length of the window: a week has 7 days, a month 30, a year 365. 0 for unknown.
[[nodiscard]] std::uint32_t seconds_of(EnvoyUnit unit) noexcept;
[[nodiscard]] std::string_view to_string(EnvoyUnit unit) noexcept;

// One step of the path to a limit.
struct EnvoyLevel {
  std::string composite;         // key or key_value
  bool value_to_metric = false;  // names of metrics contain the request's value
  // All values that match the wildcard share a counter: the counter's key has the value's pattern
  // instead of the request's value.
  bool share_threshold = false;
  std::string value_pattern;  // `value` in the file; may be empty
};

struct EnvoyLimit {
  EnvoyUnit unit = EnvoyUnit::unknown;
  std::uint32_t requests_per_unit = 0;  // 0: always exceeded
  bool unlimited = false;
  std::string name;
  std::vector<std::string> replaces;  // names of limits that this one replaces
  bool shadow_mode = false;           // counted, never rejected
  bool quota_mode = false;
  bool detailed_metric = false;
  std::string metric;              // composites of the path, joined by dots, after the domain
  std::vector<EnvoyLevel> levels;  // the path itself, as long as the descriptors that reach it
  std::string metadata_json;       // of its node; empty if there is none
  std::string domain;
};

struct EnvoyFile {
  std::string name;
  std::string text;
};

struct EnvoyOptions {
  bool merge_domains = false;          // the same domain may occur in several files
  std::size_t bytes_max = 16U << 20U;  // of one file
};

class EnvoyRules {
 public:
  EnvoyRules();
  EnvoyRules(const EnvoyRules&) = delete;
  EnvoyRules& operator=(const EnvoyRules&) = delete;
  EnvoyRules(EnvoyRules&&) noexcept;
  EnvoyRules& operator=(EnvoyRules&&) noexcept;
  ~EnvoyRules();

  [[nodiscard]] bool has_domain(std::string_view domain) const noexcept;
  [[nodiscard]] std::vector<std::string_view> domains() const;

  // The limit for a descriptor, which has at least one entry; null if there is none. It lives as
  // long as the rules do.
  [[nodiscard]] const EnvoyLimit* match(std::string_view domain,
                                        std::span<const DescriptorEntry> entries) const noexcept;

  // All limits of all domains, in the order of the files.
  [[nodiscard]] std::vector<const EnvoyLimit*> limits() const;

  struct Node;  // a level of a tree

 private:
  friend class EnvoyLoader;
  struct Domain;
  [[nodiscard]] const Domain* find(std::string_view domain) const noexcept;
  std::vector<std::unique_ptr<Domain>> domains_;  // in order of name
};

// Mistakes are reported as for our own files; do not use rules from files with mistakes.
[[nodiscard]] EnvoyRules load_envoy_rules(std::span<const EnvoyFile> files,
                                          config::Diagnostics& diagnostics,
                                          const EnvoyOptions& options = {});

// Every file below a folder, in the order of their paths; see visible_below(). They are read as all
// rules are: bounded, whole, and rejected if every user of this machine could have written them.
[[nodiscard]] EnvoyRules load_envoy_directory(const std::filesystem::path& folder,
                                              config::Diagnostics& diagnostics,
                                              const EnvoyOptions& options = {});

// Whether a pattern, in which each * matches any number of characters, matches the whole of
// `key_value`. No allocation.
[[nodiscard]] bool matches_composite(std::string_view pattern, std::string_view key,
                                     std::string_view value) noexcept;

}  // namespace sluice::rules

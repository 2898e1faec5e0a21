// What a whole decision costs beside a bare one, as JSON lines: the program that compare.py runs.
//
// A request goes from bytes that were parsed (method, host, target, headers, peer) to a decision:
// its path is normalised, its client found (the address, and an API key among a thousand), the one
// rule of N that concerns it looked up, and its limit charged, per address. 10 million addresses
// are in debt, so that every count has to be fetched from memory, as in table_bench; requests are
// made outside of the measured time. Time is virtual. What is measured is the thread's own
// processor time.

#include "base/digest.h"
#include "config/diagnostics.h"
#include "engine/decider.h"
#include "identity/identifier.h"
#include "rules/parse_rules.h"
#include "store/local/local_authority.h"
#include "store/local/local_store.h"
#include "store/local/table_impl.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using namespace sluice;

constexpr std::size_t kPiece = 256;  // requests that are made, then decided
constexpr std::int64_t kStep = 200;  // ns of virtual time between two requests

struct Options {
  std::size_t keys = 10'000'000;
  double seconds = 1.0;
  bool small_pages = false;
};

double cpu_nanos() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

std::uint64_t scrambled(std::uint64_t x) {
  x = (x ^ (x >> 31U)) * 0x7fb5d329728ea185ULL;
  x = (x ^ (x >> 27U)) * 0x81dadef4bc2dd44dULL;
  return x ^ (x >> 33U);
}

// ---- rules ------------------------------------------------------------------------------------

// How many different limits there are among the rules.
constexpr std::size_t kSomeAmounts = 100;

// A third exact paths, a third templates, a third conditions on headers and clients; the last one
// is the one that concerns the requests.
std::string rules_yaml(std::size_t count, std::size_t amounts = kSomeAmounts) {
  std::string text = "rules:\n";
  for (std::size_t i = 0; i + 1 < count; ++i) {
    text +=
        fmt::format("  - name: rule-{}\n    limit: {}/1h\n    per: [ip]\n", i, 100 + i % amounts);
    switch (i % 6) {
      case 0:
      case 1: text += fmt::format("    match: {{path: /v1/things-{}}}\n", i); break;
      case 2: text += fmt::format("    match: {{path: '/v1/users/{{id}}/of-{}'}}\n", i); break;
      case 3: text += fmt::format("    match: {{path: /v2/of-{}/**}}\n", i); break;
      case 4:
        text += fmt::format("    match: {{path: /v1/**, header: {{x-plan: p{}}}}}\n", i);
        break;
      default: text += fmt::format("    match: {{tenant: tenant-{}}}\n", i); break;
    }
  }
  return text +
         "  - {name: files, limit: 100/1h, per: [ip], match: {path: '/v1/users/{id}/files'}}\n";
}

// Rules that the values of a query field, of a cookie and the beginning of a header tell apart.
std::string field_rules_yaml(std::size_t count) {
  std::string text = "rules:\n";
  for (std::size_t i = 0; i < count; ++i) {
    text += fmt::format("  - name: rule-{}\n    limit: 100/1h\n    per: [ip]\n", i);
    switch (i % 3) {
      case 0: text += fmt::format("    match: {{query: {{plan: p{}}}}}\n", i); break;
      case 1: text += fmt::format("    match: {{cookie: {{plan: p{}}}}}\n", i); break;
      default:
        text += fmt::format("    match: {{header: {{x-plan: {{prefix: p{}-}}}}}}\n", i);
        break;
    }
  }
  return text;
}

std::shared_ptr<const rules::RuleSet> load(const std::string& text) {
  config::Diagnostics diagnostics;
  rules::RuleList list = rules::parse_rules_text(text, "bench.yaml", diagnostics);
  if (!diagnostics.ok()) {
    fmt::print(stderr, "{}", diagnostics.text());
    std::exit(3);
  }
  return std::make_shared<const rules::RuleSet>(std::move(list));
}

// ---- requests ---------------------------------------------------------------------------------

// 2001:db8:…: the network is the client, 64 bits of it.
IpAddress address_of(std::uint64_t key) {
  std::array<std::uint8_t, 16> bytes{0x20, 0x01};
  for (std::size_t i = 0; i < 6; ++i) bytes[2 + i] = static_cast<std::uint8_t>(key >> (8 * i));
  return IpAddress::v6(bytes);
}

class Requests {
 public:
  explicit Requests(std::string api_key)
      : api_key_(std::move(api_key)),
        headers_{HeaderView{"User-Agent", "curl/7.88.1"}, HeaderView{"Accept", "application/json"},
                 HeaderView{"X-Api-Key", api_key_},
                 HeaderView{"X-Request-Id", "0f8fad5b-d9cb-469f-a165-70867728950e"},
                 HeaderView{"Accept-Encoding", "gzip"}} {
    for (std::size_t i = 0; i < kPiece; ++i) {
      targets_[i] = fmt::format("/v1/users/{}/files?page={}", 1000 + i * 7, i);
      all_[i] = {.method = "GET",
                 .host = "api.example.com",
                 .target = targets_[i],
                 .headers = headers_,
                 .peer = {},
                 .tls_subject = {},
                 .domain = {},
                 .descriptor = {}};
    }
  }
  void choose(std::uint64_t& state, std::size_t keys) {
    for (RequestView& request : all_) {
      state += 0x9e3779b97f4a7c15ULL;
      request.peer = address_of(scrambled(state) % keys);
    }
  }
  void choose_next(std::uint64_t& next) {
    for (RequestView& request : all_) request.peer = address_of(next++);
  }
  [[nodiscard]] std::span<const RequestView> all() const { return all_; }

 private:
  std::string api_key_;
  std::array<HeaderView, 5> headers_;
  std::array<std::string, kPiece> targets_;
  std::array<RequestView, kPiece> all_;
};

// ---- measuring --------------------------------------------------------------------------------

Now at(std::int64_t now) {
  return {.mono = MonoTime{Nanos{now}}, .wall_offset = Nanos{1'700'000'000'000'000'000}};
}

std::int64_t virtual_now = 1'000'000'000'000'000;
std::uint64_t sum = 0;  // keeps answers from being optimised away

// Other guests of the machine disturb a run for milliseconds at a time, and code that computes more
// than code that waits for memory; so what counts is the best of many slices.
template <class Decide>
void measure(const Options& options, std::string_view what, std::size_t rules, Requests& requests,
             Decide decide) {
  constexpr std::size_t kPiecesOfSlice = 40;
  std::uint64_t state = 7919;
  double best = std::numeric_limits<double>::infinity();
  for (double all = 0; all < options.seconds * 1e9;) {
    double nanos = 0;
    for (std::size_t piece = 0; piece < kPiecesOfSlice; ++piece) {
      requests.choose(state, options.keys);
      virtual_now += static_cast<std::int64_t>(kPiece) * kStep;
      const double began = cpu_nanos();
      decide(requests.all(), virtual_now);
      nanos += cpu_nanos() - began;
    }
    all += nanos;
    best = std::min(best, nanos / (kPiecesOfSlice * kPiece));
  }
  fmt::print(R"({{"what":"{}","rules":{},"ns":{:.2f}}})"
             "\n",
             what, rules, best);
  std::fflush(stdout);
}

struct Subject {
  explicit Subject(const Options& options) {
    const double slots = static_cast<double>(options.keys) / 0.6;
    const double share = 1 - 1.0 / store::kLimitsPart - 1.0 / store::kBlocksPart;
    table = store::LocalStore::open(
                {.mapping = {.memory = static_cast<std::size_t>(slots * 16.125 / share),
                             .pages = options.small_pages ? store::Pages::small
                                                          : store::Pages::automatic}},
                at(0))
                .value();
    limits = std::make_unique<store::LocalLimits>(*table);
    local = std::make_unique<store::LocalAuthority>(*table, 1);
    worker = std::make_unique<engine::Decider>(*local, *limits);
    identity::IdentifierConfig config;
    std::vector<identity::ApiKeyRecord> keys;
    for (int i = 0; i < 1000; ++i) {
      const std::string key = fmt::format("key-{:028}", i);
      keys.push_back({.name = fmt::format("client-{}", i),
                      .hash = identity::hash_api_key(key),
                      .tier = "free"});
    }
    config.api_keys = std::make_shared<const identity::ApiKeys>(
        identity::ApiKeys::create(std::move(keys)).value());
    worker->use(identity::Identifier::create(std::move(config)).value());
  }
  void use(std::shared_ptr<const rules::RuleSet> rules) {
    snapshot = engine::Snapshot::make(std::move(rules), {}, *limits, at(virtual_now)).value();
    worker->use(snapshot);
  }
  std::unique_ptr<store::LocalStore> table;
  std::unique_ptr<store::LocalLimits> limits;
  std::unique_ptr<store::LocalAuthority> local;
  std::unique_ptr<engine::Decider> worker;
  std::shared_ptr<const engine::Snapshot> snapshot;
  engine::Op op;
  std::array<engine::Op, 16> ops;
};

// What the engine does with one request, from the first to the last word.
[[gnu::noinline]] void decide_one_by_one(Subject& subject, std::span<const RequestView> requests,
                                         std::int64_t now) {
  for (const RequestView& request : requests) {
    const Now then = at(now += kStep);
    (void)subject.worker->decide(subject.op, request, then);
    sum += subject.op.decision.remaining;
    subject.worker->settle(subject.op, nullptr, then);
  }
}

void decide_in_batches(Subject& subject, std::span<const RequestView> requests, std::int64_t now) {
  std::array<engine::Op*, 16> ops;
  for (std::size_t i = 0; i < ops.size(); ++i) ops[i] = &subject.ops[i];
  for (std::size_t first = 0; first < requests.size(); first += ops.size()) {
    subject.worker->decide_batch(ops, requests.subspan(first, ops.size()), at(now));
    for (engine::Op* op : ops) {
      sum += op->decision.remaining;
      subject.worker->settle(*op, nullptr, at(now));
    }
  }
}

// From text to a snapshot that requests can be decided by. No two limits are the same.
void measure_loading(std::size_t count) {
  const std::string text = rules_yaml(count, count);
  const auto table =
      store::LocalStore::open({.mapping = {.memory = std::size_t{64} << 20U}}, at(0)).value();
  store::LocalLimits limits{*table};
  const double began = cpu_nanos();
  const auto snapshot = engine::Snapshot::make(load(text), {}, limits, at(0)).value();
  fmt::print(R"({{"what":"load","rules":{},"ns":{:.0f}}})"
             "\n",
             count, cpu_nanos() - began);
}

struct Made {
  std::string path = "/v1/nothing/in/particular";
  std::string query;
  std::string plan;
  std::string cookie = "a=1";
  std::string tenant;
  std::vector<HeaderView> headers;
  RequestView request;
  identity::Identity client;

  void finish() {
    headers = {{"User-Agent", "bench/1.0"},
               {"Accept", "*/*"},
               {"X-Plan", plan},
               {"X-Request-Id", "7"},
               {"Cookie", cookie}};
    client.tenant = tenant;
    request = {.method = "GET",
               .host = "api.example.com",
               .target = path,
               .headers = headers,
               .peer = {},
               .tls_subject = {},
               .domain = {},
               .descriptor = {}};
  }
};

// A request that a rule of rules_yaml concerns.
std::unique_ptr<Made> made_for(std::uint64_t rule) {
  auto made = std::make_unique<Made>();
  switch (rule % 6) {
    case 0:
    case 1: made->path = fmt::format("/v1/things-{}", rule); break;
    case 2: made->path = fmt::format("/v1/users/4711/of-{}", rule); break;
    case 3: made->path = fmt::format("/v2/of-{}/a/b", rule); break;
    case 4: made->plan = fmt::format("p{}", rule); break;
    default: made->tenant = fmt::format("tenant-{}", rule); break;
  }
  made->finish();
  return made;
}

// ... one of field_rules_yaml.
std::unique_ptr<Made> made_for_fields_of(std::uint64_t rule) {
  auto made = std::make_unique<Made>();
  switch (rule % 3) {
    case 0: made->query = fmt::format("page=3&plan=p{}", rule); break;
    case 1: made->cookie = fmt::format("a=1; plan=p{}", rule); break;
    default: made->plan = fmt::format("p{}-and-more", rule); break;
  }
  made->finish();
  return made;
}

// Matching alone, with requests that are concerned by all sorts of rules.
void measure_matching(const Options& options, std::string_view what, const std::string& rules,
                      std::unique_ptr<Made> (*make)(std::uint64_t)) {
  const std::shared_ptr<const rules::RuleSet> set = load(rules);
  const std::size_t count = set->rules().size();
  std::vector<std::unique_ptr<Made>> all;
  for (std::uint64_t i = 0; i < kPiece; ++i) all.push_back(make(scrambled(i + 1) % (count - 1)));
  rules::Matches matches;
  double nanos = 0;
  std::uint64_t matched = 0;
  while (nanos < options.seconds * 1e9) {
    const double began = cpu_nanos();
    for (const auto& made : all) {
      set->match({.request = made->request,
                  .domain = "default",
                  .host = made->request.host,
                  .path = made->path,
                  .query = made->query,
                  .client = made->client},
                 rules::Phase::after_auth, matches);
      sum += matches.count;
    }
    nanos += cpu_nanos() - began;
    matched += all.size();
  }
  fmt::print(R"({{"what":"{}","rules":{},"ns":{:.2f}}})"
             "\n",
             what, count, nanos / static_cast<double>(matched));
  std::fflush(stdout);
}

void run(const Options& options) {
  measure_loading(10'000);
  for (const std::size_t count : {std::size_t{10}, std::size_t{1000}, std::size_t{10'000}}) {
    measure_matching(options, "match", rules_yaml(count), made_for);
    measure_matching(options, "match_fields", field_rules_yaml(count), made_for_fields_of);
  }

  Subject subject{options};
  Requests requests{fmt::format("key-{:028}", 77)};
  subject.use(load(rules_yaml(1000)));
  for (std::uint64_t next = 0; next < options.keys;) {
    requests.choose_next(next);
    decide_one_by_one(subject, requests.all(), virtual_now);
  }

  // The bare decision: the same keys, hashed and charged, and nothing else.
  const engine::Plan& plan = subject.snapshot->plan(999);
  const auto check_of = [&](const RequestView& request) {
    const IpAddress network = request.peer.masked(64);
    const std::string_view bytes{reinterpret_cast<const char*>(network.bytes.data()), 16};
    return store::Check{.key = {.low = plan.hasher->low(bytes) ^ plan.limits[0].salt},
                        .limit = plan.limits[0].number};
  };
  const auto bare = [&](std::span<const RequestView> all, std::int64_t now) {
    for (const RequestView& request : all) {
      sum += subject.table->admits(check_of(request), at(now += kStep)) ? 1U : 0U;
    }
  };
  store::Answer answer;
  const auto answered = [&](std::span<const RequestView> all, std::int64_t now) {
    for (const RequestView& request : all) {
      subject.table->decide(check_of(request), at(now += kStep), answer);
      sum += answer.decision.remaining;
    }
  };
  measure(options, "table", 1, requests, bare);
  measure(options, "table_answered", 1, requests, answered);
  for (const std::size_t count : {std::size_t{10}, std::size_t{1000}, std::size_t{10'000}}) {
    subject.use(load(rules_yaml(count)));
    measure(options, "engine", count, requests, [&](std::span<const RequestView> all, auto now) {
      decide_one_by_one(subject, all, now);
    });
    measure(
        options, "engine_batch", count, requests,
        [&](std::span<const RequestView> all, auto now) { decide_in_batches(subject, all, now); });
  }
  if (sum == 1) fmt::print("\n");  // never
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--small-pages") {
      options.small_pages = true;
    } else if (argument == "--keys" && i + 1 < argc) {
      options.keys = static_cast<std::size_t>(std::atoll(argv[++i]));
    } else if (argument == "--seconds" && i + 1 < argc) {
      options.seconds = std::atof(argv[++i]);
    } else {
      fmt::print(stderr, "usage: engine_bench [--keys N] [--seconds S] [--small-pages]\n");
      return 2;
    }
  }
  run(options);
}

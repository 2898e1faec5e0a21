#include "contract/world.h"

#include "base/random.h"
#include "contract/table_authority.h"
#include "store/local/local_authority.h"
#include "store/shared/shared_stores.h"
#include "support/awkward_store.h"

#include <algorithm>
#include <iterator>
#include <ostream>
#include <stdexcept>

namespace sluice::contract {
namespace {

using store::LocalStore;
using store::LocalStores;

std::unique_ptr<LocalStore> new_table(Now now) {
  auto table = LocalStore::open({.mapping = {.memory = 2 * store::Mapping::kMemoryMin}}, now);
  if (!table) throw std::runtime_error{table.error().text()};
  return *std::move(table);
}

class LocalWorld final : public World {
 public:
  LocalWorld(std::uint64_t /*seed*/, Now now) : table_(new_table(now)), stores_(*table_) {}

  store::Stores& stores() override { return stores_; }
  Sharing terms(OnFailure on_failure) const override {
    return {.mode = Mode::local, .on_failure = on_failure};
  }
  void deliver(Now /*now*/) override {}

 private:
  std::unique_ptr<LocalStore> table_;
  LocalStores stores_;
};

// Replies in an order that the seed decides.
class AwkwardWorld final : public World {
 public:
  AwkwardWorld(std::uint64_t seed, Now now)
      : order_(seed),
        local_(new_table(now)),
        shared_(new_table(now)),
        local_stores_(*local_),
        shared_stores_(*shared_),
        stores_(local_stores_, shared_stores_) {}

  store::Stores& stores() override { return stores_; }
  Sharing terms(OnFailure on_failure) const override {
    return {.mode = Mode::exact, .on_failure = on_failure};
  }
  void deliver(Now now) override {
    for (bool moved = true; moved;) {
      moved = false;
      for (testing::AwkwardStore* const one : turns()) {
        one->advance(now);
        moved |= one->move_any(order_, now);
      }
    }
  }
  bool completes_later() const override { return true; }
  Nanos budget() const override { return testing::AwkwardOptions{}.budget; }
  void arrive(Now now) override {
    for (testing::AwkwardStore* const one : turns()) {
      one->advance(now);
      while (one->move_any(order_, now, false)) {
      }
    }
  }
  void lose() override {
    for (testing::AwkwardStore* const one : stores_.workers()) {
      for (std::size_t call = 0; call < one->calls(); ++call) {
        for (std::size_t group = 0; group < store::kCallChecksMax; ++group) one->lose(call, group);
      }
    }
  }

 private:
  std::vector<testing::AwkwardStore*> turns() {
    std::vector<testing::AwkwardStore*> turns = stores_.workers();
    std::shuffle(turns.begin(), turns.end(), order_);
    return turns;
  }

  Random order_;
  std::unique_ptr<LocalStore> local_;
  std::unique_ptr<LocalStore> shared_;
  LocalStores local_stores_;
  LocalStores shared_stores_;
  testing::AwkwardStores stores_;
};

// The product's store, over an authority that is a table: everything but the commands of Redis.
class SharedWorld final : public World {
 public:
  SharedWorld(std::uint64_t seed, Now now)
      : order_(seed),
        local_(new_table(now)),
        shared_(new_table(now)),
        truth_(*shared_),
        stores_(*local_, &TableTruth::compile, 2, [this] { return connect(); }, options(seed)) {
    stores_.limits().set_shared_secret({.first = 3, .second = 4});
  }

  store::Stores& stores() override { return recorder_; }
  Sharing terms(OnFailure on_failure) const override {
    return {.mode = Mode::exact, .on_failure = on_failure};
  }
  void deliver(Now now) override {
    bool moved = true;
    while (moved) {
      arrive(now);
      moved = false;
      for (TableAuthority* const one : authorities_) one->let_arrive(order_);
      for (TableAuthority* const one : authorities_) moved |= one->has_arrivals();
      for (store::Store* const one : workers_) one->advance(now);
    }
  }
  bool completes_later() const override { return true; }
  bool shows_allocations() const override { return false; }
  Nanos budget() const override { return store::SharedStoreOptions{}.budget; }
  void arrive(Now now) override {
    std::shuffle(authorities_.begin(), authorities_.end(), order_);
    for (store::Store* const one : workers_) one->advance(now);
    for (TableAuthority* const one : authorities_) {
      while (one->move_any(order_, now)) {
      }
    }
  }
  void lose() override {
    for (TableAuthority* const one : authorities_) one->lose();
  }

 private:
  // Small tables, which are quickly made. Without a breaker: requests that are lost have to wait.
  static store::SharedStoreOptions options(std::uint64_t seed) {
    return {.seed = seed,
            .failures_max = UINT32_MAX,
            .calls_max = 128,
            .groups_max = 512,
            .holdings_max = 256};
  }
  // Remembers the stores, which need turns.
  class Recorder final : public store::Stores {
   public:
    Recorder(store::Stores& stores, std::vector<store::Store*>& made)
        : stores_(stores), made_(made) {}
    store::Limits& limits() noexcept override { return stores_.limits(); }
    std::unique_ptr<store::Store> for_worker(unsigned workers) override {
      auto made = stores_.for_worker(workers);
      made_.push_back(made.get());
      return made;
    }

   private:
    store::Stores& stores_;
    std::vector<store::Store*>& made_;
  };

  std::unique_ptr<store::Authority> connect() {
    auto made = std::make_unique<TableAuthority>(truth_);
    authorities_.push_back(made.get());
    return made;
  }

  Random order_;
  std::unique_ptr<LocalStore> local_;
  std::unique_ptr<LocalStore> shared_;
  TableTruth truth_;
  std::vector<TableAuthority*> authorities_;
  std::vector<store::Store*> workers_;
  store::SharedStores stores_;
  Recorder recorder_{stores_, workers_};
};

template <class Kind>
std::unique_ptr<World> make(std::uint64_t seed, Now now) {
  return std::make_unique<Kind>(seed, now);
}

}  // namespace

// One line for each store.
std::vector<Subject> subjects() {
  return {
      {"local", make<LocalWorld>},
      {"awkward", make<AwkwardWorld>},
      {"shared", make<SharedWorld>},
  };
}

std::vector<Subject> late_subjects() {
  std::vector<Subject> late;
  std::ranges::copy_if(subjects(), std::back_inserter(late), [](const Subject& subject) {
    return subject.make(1, Now{.mono = MonoTime{} + std::chrono::hours{1}})->completes_later();
  });
  return late;
}

void PrintTo(const Subject& subject, std::ostream* out) { *out << subject.name; }

}  // namespace sluice::contract

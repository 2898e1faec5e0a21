#include "contract/world.h"

#include "base/random.h"
#include "store/local/local_authority.h"
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

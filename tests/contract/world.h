// A store in a world of its own, as the contract suite sees it: the suite decides when time passes
// and when requests and replies arrive.
//
// A store joins the suite by a World and one line in subjects().
#pragma once

#include "store/stores.h"
#include <sluice/limit.h>
#include <sluice/sharing.h>
#include <sluice/time.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace sluice::contract {

class World {
 public:
  World() = default;
  World(const World&) = delete;
  World& operator=(const World&) = delete;
  virtual ~World() = default;

  [[nodiscard]] virtual store::Stores& stores() = 0;
  // Under which limits are what is tested, not what every node counts alone.
  [[nodiscard]] virtual Sharing terms(OnFailure on_failure) const = 0;

  // All that was asked arrives, in any order, and all replies come back. No time passes.
  virtual void deliver(Now now) = 0;

  // Whether only the store itself allocates, and nothing of the tests on the way.
  [[nodiscard]] virtual bool shows_allocations() const { return true; }

  // Whether calls may complete later. Without that, nothing below is used.
  [[nodiscard]] virtual bool completes_later() const { return false; }
  // A decision's.
  [[nodiscard]] virtual Nanos budget() const { return Nanos{0}; }
  // All requests arrive and are decided; the replies are held back until deliver().
  virtual void arrive(Now /*now*/) {}
  // All that is on its way now is lost.
  virtual void lose() {}
};

struct Subject {
  std::string name;
  std::unique_ptr<World> (*make)(std::uint64_t seed, Now now) = nullptr;
};

[[nodiscard]] std::vector<Subject> subjects();
// Those that may complete later.
[[nodiscard]] std::vector<Subject> late_subjects();

void PrintTo(const Subject& subject, std::ostream* out);

}  // namespace sluice::contract

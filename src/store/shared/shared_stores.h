// The stores of a process that shares limits with other nodes.
#pragma once

#include "store/local/local_store.h"
#include "store/shared/authority.h"
#include "store/shared/shared_limits.h"
#include "store/shared/shared_store.h"
#include "store/stores.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

namespace sluice::store {

// Thread-safe. The table outlives it.
class SharedStores final : public Stores {
 public:
  // A worker's connection to the authority; on the thread that asks for its store.
  using MakeAuthority = std::function<std::unique_ptr<Authority>()>;

  // Each worker's jitter has a seed of its own, from options.seed on.
  SharedStores(LocalStore& table, CompileLimit compile, std::uint32_t nodes,
               MakeAuthority make_authority, const SharedStoreOptions& options)
      : table_(table),
        limits_(table, compile, nodes),
        make_authority_(std::move(make_authority)),
        options_(options) {}

  [[nodiscard]] SharedLimits& limits() noexcept override { return limits_; }
  [[nodiscard]] std::unique_ptr<Store> for_worker(unsigned workers) override {
    SharedStoreOptions options = options_;
    options.workers = workers;
    options.seed += workers_.fetch_add(1, std::memory_order_relaxed);
    return std::make_unique<WorkerStore>(make_authority_(), table_, limits_, options);
  }

 private:
  struct HasAuthority {
    std::unique_ptr<Authority> authority;
  };
  class WorkerStore final : private HasAuthority, public SharedStore {
   public:
    WorkerStore(std::unique_ptr<Authority> made, LocalStore& table, const SharedLimits& limits,
                const SharedStoreOptions& options)
        : HasAuthority{std::move(made)}, SharedStore(table, limits, *authority, options) {}
  };

  LocalStore& table_;
  SharedLimits limits_;
  const MakeAuthority make_authority_;
  const SharedStoreOptions options_;
  std::atomic<std::uint64_t> workers_{0};
};

}  // namespace sluice::store

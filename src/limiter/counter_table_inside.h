// The members of a CounterTable, for it and its limiters.
#pragma once

#include "store/local/local_store.h"
#include <sluice/counter_table.h>

#include <memory>

namespace sluice {

struct CounterTable::Inside {
  std::unique_ptr<store::LocalStore> store;
};

}  // namespace sluice

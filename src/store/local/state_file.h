// Whether a state file can be used, by reading only: it is not created, changed or locked.
#pragma once

#include "store/local/mapping.h"
#include <sluice/diagnostic.h>

#include <cstdint>

namespace sluice::store {

enum class StateFileUse : std::uint8_t { none, by_others };

// Why Mapping::open() would reject the file, or whether other processes use it.
[[nodiscard]] Parsed<StateFileUse> inspect_state_file(const MappingOptions& options);

}  // namespace sluice::store

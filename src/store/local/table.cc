#include "store/local/table.h"

#include "store/local/table_impl.h"

namespace sluice::store {

template class BasicTable<DirectAccess>;

}  // namespace sluice::store

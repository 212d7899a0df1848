// Storages of the host that show the memory of xpu storages.
#pragma once

#include <c10/core/StorageImpl.h>

namespace xpurt {

// Memory of an alias, which keeps the storage it shows.
c10::DataPtr alias_data(c10::StorageImpl* original);

// If the original may share its bytes with other storages, a kernel that asks the
// alias for a mutable pointer makes both private. See Note [Lazy copies].
void follow_original(c10::StorageImpl& alias, c10::StorageImpl& original);

// For an alias that somebody keeps: makes both private now.
void materialize_alias(c10::StorageImpl& alias);

}  // namespace xpurt

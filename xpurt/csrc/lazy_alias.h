// Aliases of storages that share their bytes. See Note [Lazy copies].
#pragma once

#include <c10/core/StorageImpl.h>

namespace xpurt {

// If the original may share its bytes with other storages, a kernel that asks the
// alias for a mutable pointer makes both private.
void follow_original(c10::StorageImpl& alias, c10::StorageImpl& original);

// For an alias that somebody keeps: makes both private now.
void settle_alias(c10::StorageImpl& alias);

}  // namespace xpurt

// Storages over the memory of storages of another device.
#pragma once

#include <c10/core/Storage.h>

namespace xpurt {

// The memory of an alias. It holds a reference to the original storage.
c10::DataPtr alias_data(c10::StorageImpl* original, c10::Device device = c10::kCPU);

// A CPU storage over all bytes of an xpu storage. It follows the original, see below.
c10::Storage alias_of(c10::StorageImpl* original);

// The original storage of an alias; nullptr for any other storage.
c10::StorageImpl* original_of(const c10::StorageImpl& storage);

// If the original may share its bytes with other storages, a kernel that gets a mutable
// pointer from the alias makes the original private first. See Note [Lazy copies].
void follow_original(c10::StorageImpl& alias, c10::StorageImpl& original);

// For an alias that is kept after the call: makes the original private now.
void materialize_alias(c10::StorageImpl& alias);

}  // namespace xpurt

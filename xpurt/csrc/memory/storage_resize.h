// New memory for an xpu storage.
#pragma once

#include <c10/core/Storage.h>

namespace xpurt {

// Gives a storage `bytes` bytes of new memory, and copies the old contents to its
// start.
void resize_storage(const c10::Storage& storage, size_t bytes);

}  // namespace xpurt

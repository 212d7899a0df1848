// Storages whose memory other code writes through pointers of its own.
#pragma once

#include <ATen/core/TensorBase.h>

namespace xpurt {

// Called when other code has a raw pointer to the storage's memory, and may write there
// at any time. The storage is never copied lazily from then on.
void never_copy_lazily(const c10::StorageImpl& storage);
// Whether never_copy_lazily() was called for the storage.
bool is_never_copied_lazily(const c10::StorageImpl& storage);

// never_copy_lazily() for a tensor that a capture reads or writes. Throws if it may
// share its memory now.
void known_to_graph(const at::TensorBase& tensor);

}  // namespace xpurt

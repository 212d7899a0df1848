// When `.to("xpu")` and `.cpu()` make lazy copies.
#pragma once

#include <ATen/core/TensorBase.h>

namespace xpurt {

// Conversions of this thread, or of all threads that have said nothing, are lazy where
// they can be. From the first time on PyTorch's _to_copy comes by here.
enum class Lazy : int8_t { unsaid = -1, off = 0, on = 1 };
Lazy exchange_lazy_copies(Lazy value);
void set_lazy_copies_of_process(bool on);
bool lazy_copies();

// A raw pointer to the storage's memory is known to somebody who says nothing when he
// writes: it is never copied lazily.
void never_copy_lazily(const c10::StorageImpl& storage);
// The same for what a capture reads or writes. Throws if it may share its memory now.
void known_to_graph(const at::TensorBase& tensor);

}  // namespace xpurt

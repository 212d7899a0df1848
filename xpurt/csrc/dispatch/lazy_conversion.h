// When `.to("xpu")` and `.cpu()` make lazy copies.
#pragma once

#include <cstdint>

namespace xpurt {

// Conversions of this thread, or of all threads that have said nothing, are lazy where
// they can be. From the first time on PyTorch's _to_copy comes by here.
enum class Lazy : int8_t { unset = -1, off = 0, on = 1 };
Lazy exchange_lazy_copies(Lazy value);
void set_lazy_copies_of_process(bool on);
bool lazy_copies();

}  // namespace xpurt

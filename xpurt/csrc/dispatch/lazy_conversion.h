// Whether `.to("xpu")` and `.cpu()` make lazy copies.
#pragma once

#include <cstdint>

namespace xpurt {

// The setting of this thread, and of the process for threads without their own. If on,
// conversions are lazy where that is possible. The first `on` replaces PyTorch's
// _to_copy.
enum class Lazy : int8_t { unset = -1, off = 0, on = 1 };
Lazy exchange_lazy_copies(Lazy value);
void set_lazy_copies_of_process(bool on);
bool lazy_copies();

}  // namespace xpurt

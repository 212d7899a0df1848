// Kernels for xpu that other libraries bring. See Note [Foreign kernels].
#pragma once

namespace xpurt {

// Called once, after all our ops are registered. Kernels for xpu that are registered
// later, or for ops of other namespaces, are foreign.
void watch_foreign_kernels();

}  // namespace xpurt

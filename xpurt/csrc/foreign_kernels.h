// Kernels for xpu that other libraries bring. See Note [Foreign kernels].
#pragma once

namespace xpurt {

// Called once every op of ours is registered: kernels on xpu's key from now on, and of
// other namespaces, are foreign.
void watch_foreign_kernels();

}  // namespace xpurt

// Kernels for xpu that other libraries register. See Note [Foreign kernels].
#pragma once

namespace xpurt {

// Called once, after all ops of xpurt are registered. A kernel for xpu is foreign if
// its op is outside the aten namespace or was defined later.
void watch_foreign_kernels();

}  // namespace xpurt

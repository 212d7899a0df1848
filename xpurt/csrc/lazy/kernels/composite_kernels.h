// Ops that PyTorch takes apart wrongly, or not at all, for lazy tensors.
#pragma once

namespace xpurt {

// Registers kernels that take them apart, or put the result of another form in place.
void register_composite_kernels();

}  // namespace xpurt

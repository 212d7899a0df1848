// Copies between lazy tensors and tensors of other devices.
#pragma once

namespace xpurt {

// Note [Copies to and from lazy tensors]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// PyTorch's functionalization refuses x.copy_(y) if one of them is lazy and the other
// one is not. So what is not lazy becomes so, and a lazy source is computed.

// Registers the kernel, which calls PyTorch's for other copies.
void register_mixed_copy();

}  // namespace xpurt

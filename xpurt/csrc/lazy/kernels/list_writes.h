// Kernels of the Functionalize key for ops that write to lists of lazy tensors.
#pragma once

namespace xpurt {

// Registers them, once. See Note [Ops on lists of lazy tensors].
void register_list_writes();

}  // namespace xpurt

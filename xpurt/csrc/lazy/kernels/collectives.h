// Collectives on lazy tensors.
#pragma once

namespace xpurt {

// Registers them, for the ops of PyTorch's process groups and for functional
// collectives: see Note [Collectives of lazy graphs]. A call that can't be a node runs
// at once: what was traced runs before, the process group gets the values, and the lazy
// tensors take the results.
void register_lazy_collectives();

}  // namespace xpurt

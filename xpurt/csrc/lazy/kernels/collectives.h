// Collectives on lazy tensors.
#pragma once

namespace xpurt {

// Note [Collectives on lazy tensors]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// A collective waits for other processes, so all of them have to call theirs in one
// order, and it returns a handle that the program may wait for. A node that runs when
// its result is looked at could come in another order, or never. So a collective runs
// when it is called: what it reads is computed, the process group gets its tensors, and
// the lazy tensors take the results.

// Registers them, for the ops of PyTorch's process groups.
void register_lazy_collectives();

}  // namespace xpurt

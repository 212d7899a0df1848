// Kernels of the Lazy key for ops that PyTorch's lazy core has no node for.
#pragma once

namespace xpurt {

// Note [Ops that the lazy core lacks]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// The core has nodes for the ops in a list of PyTorch's, and computes any other one on
// the CPU, on copies. Here such an op becomes a node, too, if its arguments say what
// the sizes of its results are: they come from its meta function. Else what it reads is
// computed, and the op runs on xpu at once. Functionalization comes before both, so no
// op that gets here writes to its arguments.
//
// That holds for ops that programs define, too. One with a kernel for all devices would
// get lazy tensors beneath functionalization, and what it writes to views of them would
// be lost. So a kernel of the Lazy key has to be there before its first call.

// Registers them, once, after the core's own kernels.
void init_lazy_kernels();

// Registers those of ops that run on the type behind lazy devices, after it has
// changed.
bool register_kernels_of_type();

// Registers those of ops that were defined since the last call. Returns whether there
// were any.
bool register_lazy_kernels();

}  // namespace xpurt

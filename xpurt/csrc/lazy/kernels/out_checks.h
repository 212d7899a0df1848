// What an out= argument of a lazy tensor is refused for.
#pragma once

namespace xpurt {

// Note [out= of lazy tensors]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~
// Functionalization computes a new tensor, and converts it to the dtype of out=.
// Kernels of PyTorch refuse dtypes, and a result that shares memory with itself or with
// an operand. So these calls are checked before. If the dtype of a result is not that
// of out=, the CPU kernel is asked on zeros. Lazy tensors have no memory, but views
// know their base: a view with more elements than it has some of them twice.
//
// Puts the checks in front of the kernels of all overloads with out=.
void register_out_checks();

}  // namespace xpurt

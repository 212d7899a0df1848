// Kernels of the Functionalize key for views of lazy tensors, and for writes to them.
#pragma once

namespace xpurt {

// Note [Functionalization of lazy tensors]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// PyTorch's kernels of the Functionalize key make views and writes functional before
// they are traced. They call the op on meta tensors first, which takes 15 us for `add_`
// and 100 us for `lerp_`, much of it in Python, and which says no more than the shape
// of the functional op's result. They keep each write as an update of the storage, from
// which every view of it is traced again.
//
// These do without both. The shape of the result is compared with that of what is
// written. A storage that no other tensor has needs no updates: it starts anew. And
// `detach` is another tensor of the same storage and value, without a node.
//
// Tensors of other devices go to PyTorch's kernels, which were there before.

// Registers them, once.
void register_functional_kernels();

}  // namespace xpurt

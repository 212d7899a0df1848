// The fallbacks of xpu: what runs an op that has no kernel of its own on a key of xpu.
#pragma once

#include <ATen/core/stack.h>
#include <c10/core/DispatchKeySet.h>

namespace c10 {
class OperatorHandle;
}

namespace xpurt {

using Fallback = void(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                      torch::jit::Stack* stack);

// Note [One registration of fallbacks]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// A key has one fallback, and to register or to drop one updates the tables of all ops:
// 12 ms a key. So those that `import torch` registers stay (first_use/module.cpp), and
// call the extension's once it is loaded. The extension registers its own only where it
// is loaded without them.
struct Fallbacks {
  Fallback* strided;  // of DispatchKey::XPU
  Fallback* special;  // of the other layouts
};

inline constexpr c10::DispatchKey kStridedKey = c10::DispatchKey::XPU;
inline constexpr c10::DispatchKey kSpecialKeys[] = {
    c10::DispatchKey::SparseXPU,
    c10::DispatchKey::SparseCsrXPU,
    c10::DispatchKey::QuantizedXPU,
    c10::DispatchKey::NestedTensorXPU,
};

// The name of the capsule in which the extension hands them over in Python.
inline constexpr char kFallbacksCapsule[] = "xpurt.fallbacks";

}  // namespace xpurt

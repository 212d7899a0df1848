// The dispatch keys of autocast with a layout.
#pragma once

#include <c10/core/DispatchKeySet.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <string>
#include <vector>

namespace xpurt {

// Note [Keys of autocast with a layout]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// A block needs kernels for convolutions and linear layers, whatever their operands
// are, and kernels for every op that gets one of their results. PyTorch's AutocastCPU
// and AutocastXPU serve neither: they have kernels of PyTorch, which programs without a
// layout run, too; they are excluded where a block leaves the types alone, or computes
// in int8, or where a block within it is not enabled; and they are keys of all tensors.
// So two Autocast keys are used of device types that are not in the process. They come
// before AutocastCPU and AutocastXPU, and compiled code runs without any Autocast key.
//
// `block` is included in a thread while it is in a block. The ops with a layout have
// kernels there, every other op passes it at no cost. `tensor` is in the key set of a
// tensor that has a layout for a while, so an op is dispatched there only if one of its
// operands is such a tensor. Outside of blocks PyTorch excludes both, as all Autocast
// keys: no other program meets them.
struct LayoutKeys {
  c10::DispatchKey block;  // comes before `tensor`
  c10::DispatchKey tensor;
  c10::DispatchKeySet both;
  std::vector<std::string> types;  // the device types that they are of, as "xla"
};

// Chosen at the first call. Raises NotImplementedError if fewer than two are free.
const LayoutKeys& layout_keys();

// While it lives, ops are those of PyTorch.
class WithoutLayouts {
 public:
  WithoutLayouts() : guard_(layout_keys().both) {}

 private:
  c10::impl::ExcludeDispatchKeyGuard guard_;
};

// The keys after `key`, for the call of the kernel that comes next.
inline c10::DispatchKeySet after(c10::DispatchKeySet keys, c10::DispatchKey key) {
  return keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, key);
}

}  // namespace xpurt

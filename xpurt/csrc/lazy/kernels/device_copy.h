// Copies of lazy tensors to other devices.
#pragma once

namespace xpurt {

// Note [Lazy tensors on two devices]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// A graph runs on one device. So a tensor that moves from lazy:0 to lazy:1 is computed,
// and its value is moved. The core would move it to the device of its fallback with
// that index, cpu:1.

// Registers the kernel of `_to_copy`, which calls the core's for other copies, and
// counts those to the host. Called after the core's kernels have the lock.
void register_device_copy();

}  // namespace xpurt

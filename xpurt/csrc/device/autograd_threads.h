// The autograd engine's threads for xpu.
#pragma once

#include <c10/core/Device.h>

namespace xpurt {

// What the guard answers as its number of devices: see Note [Autograd's threads].
c10::DeviceIndex autograd_device_count() noexcept;

// Gives the autograd engine a thread per possible ordinal; called when the first
// placement of the process is installed.
void open_autograd_threads();

// Returns when the threads have let go of everything that they have worked on: see
// Note [Autograd's threads at exit].
void drain_autograd_threads();

}  // namespace xpurt

// The autograd engine's threads for xpu.
#pragma once

#include <c10/core/Device.h>

namespace xpurt {

// The number of devices that the guard reports: see Note [Autograd's threads].
c10::DeviceIndex autograd_device_count() noexcept;

// Gives the autograd engine a thread per possible ordinal. Called when the first
// placement of the process is installed.
void open_autograd_threads();

// Returns when the threads have released everything that they have worked on: see Note
// [Autograd's threads at exit].
void drain_autograd_threads();

}  // namespace xpurt

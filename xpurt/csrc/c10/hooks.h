// Whether xpu answers as PyTorch's accelerator.
#pragma once

namespace xpurt {

// On a build of PyTorch that has another accelerator only one may be active.
void set_active(bool value);
bool is_active();

// Makes the hooks object ours if PyTorch made its own before we were loaded.
void repair_late_hooks();

}  // namespace xpurt

// Whether xpu is PyTorch's accelerator.
#pragma once

namespace xpurt {

// On a build of PyTorch with another accelerator, only one of the two may be active.
void set_active(bool value);
bool is_active();

// From now on PyTorch's choice of an accelerator passes over xpu, and on a CUDA build
// over CUDA. It refuses HPU beside either; a prototype on HPU is the accelerator then,
// and xpu computes beside it.
void hide_accelerator();
bool is_hidden();

// Replaces the hooks object that PyTorch made before this library was loaded.
void repair_late_hooks();

}  // namespace xpurt

// Loads xpurt, and says whether that gave the process an xpu device.
#pragma once

#include <c10/core/Device.h>
#include <c10/util/Exception.h>

namespace xpurt {

// Note [First use]
// ~~~~~~~~~~~~~~~~
// The extension and the libraries of SYCL and oneDNN are for programs that use xpu. So
// `import torch` registers stand-ins of what PyTorch's C++ asks for: the hooks, the
// device guard, the allocators, and a fallback of all ops on the keys of xpu. A call of
// a stand-in imports xpurt, and then goes to what xpurt has registered in its place.
//
// Some calls come from programs on CPU tensors: every backward asks for the accelerator
// and the number of its devices, and every DataLoader whether memory is pinned. Before
// the first use, the answers are known without xpurt: it is built, it has no device
// that autograd needs a thread for, nothing is initialized or pinned.
//
// What Python asks for has stand-ins in Python: see xpurt/startup/first_use.py.

// Imports xpurt, if it is not imported. False if it gave the process no device, or the
// calling thread is importing it.
bool load();

// From now on nothing is answered: xpurt is being imported.
void step_aside();
bool has_stepped_aside();

void install_hooks();
void install_guard();
void install_allocators();

// What an error says after a load that failed.
#define XPURT_CHECK_LOADED(loaded)                                  \
  TORCH_CHECK(loaded,                                               \
              "xpurt gives this process no xpu device; the reason " \
              "was in a warning, and `python -m xpurt doctor` has it")

}  // namespace xpurt

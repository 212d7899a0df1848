// xpu beside CUDA: what a CUDA build of PyTorch needs to hear.
#pragma once

namespace xpurt {

// Whether this PyTorch was built with CUDA (not whether a GPU is there).
bool is_cuda_build();

// On a CUDA build, makes PyTorch's CUDA hooks answer "not built" while xpu is the
// active accelerator. See Note [Two accelerators]. Nothing on other builds.
void yield_cuda_to_xpu();

}  // namespace xpurt

// xpu beside CUDA, on a CUDA build of PyTorch.
#pragma once

namespace xpurt {

// Whether this PyTorch was built with CUDA (even without a GPU).
bool is_cuda_build();

// On a CUDA build, makes PyTorch's CUDA hooks report "not built" while `yields` returns
// true. See Note [Two accelerators]. Does nothing on other builds.
void yield_cuda_while(bool (*yields)());

}  // namespace xpurt

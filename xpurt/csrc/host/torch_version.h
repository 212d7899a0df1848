// What differs between the supported versions of PyTorch; xpurt/torch_versions.py has
// the same for Python.
#pragma once

#include <torch/headeronly/version.h>

// Whether this PyTorch is of a series or a later one, as in XPURT_TORCH_AT_LEAST(2,
// 14).
#define XPURT_TORCH_AT_LEAST(major, minor) \
  (TORCH_VERSION_MAJOR > (major) ||        \
   (TORCH_VERSION_MAJOR == (major) && TORCH_VERSION_MINOR >= (minor)))

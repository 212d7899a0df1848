// The random generator of an xpu ordinal: Philox state, a seed and an offset.
#pragma once

#include <ATen/core/Generator.h>

namespace xpurt {

// The default generator of xpu:index; index -1 is the current device.
const at::Generator& default_generator(c10::DeviceIndex index);

at::Generator make_generator(c10::DeviceIndex index);

}  // namespace xpurt

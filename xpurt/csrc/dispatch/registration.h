// The registration of run_op() for ops.
#pragma once

#include <string>

#include "host/fallbacks.h"

namespace xpurt {

// The fallbacks that run ops on xpu, and their registration, where `import torch` has
// not registered any: see Note [One registration of fallbacks].
const Fallbacks& fallbacks();
void register_fallbacks();

// Registers every op that has a CPU kernel and none from xpurt. Called after the static
// registrations of this library.
void register_remaining_ops();

// Makes xpu run an op of another library by its CPU kernel, although the op has a
// composite kernel. See Note [Registered twice]. Returns false if the op does not
// exist, has no CPU kernel, or has one for xpu.
bool prefer_cpu_kernel(const std::string& name, const std::string& overload);

}  // namespace xpurt

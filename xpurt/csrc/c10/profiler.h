// torch.profiler: device work in its traces, through Kineto.
#pragma once

namespace xpurt {

// Tells Kineto, which asks when a profile begins. Touches no device. Nothing on a build
// of PyTorch with CUDA: see Note [Whose activities].
void register_profiler();

}  // namespace xpurt

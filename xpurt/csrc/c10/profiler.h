// torch.profiler: device work in its traces, through Kineto.
#pragma once

namespace xpurt {

// Registers with Kineto, which creates the profiler when a profile begins. Uses no
// device. Does nothing on a build of PyTorch with CUDA: see Note [Whose activities].
void register_profiler();

}  // namespace xpurt

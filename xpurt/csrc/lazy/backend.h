// torch::lazy's interface of a backend: lazy tensors are traced, and their graphs run
// on xpu, under the mapping in force.
#pragma once

namespace xpurt {

// Makes xpu the backend of the device "lazy". Once per process. Throws if another
// backend has been registered.
void init_lazy_backend();

}  // namespace xpurt

// PyTorch's ops of collectives: each calls the group's backend for the tensors' device.
#pragma once

#include <torch/library.h>

#include <functional>

#include "distributed/backend.h"
#include "host/api.h"

namespace xpurt {

// Returns a group's backend for one device type. Throws if it has none.
using FindBackend = BackendPointer (*)(c10d::ProcessGroup& group);
using WantedOp = std::function<bool(const char* op)>;

// Registers the ops of c10d for which `is_wanted` is true with `library`, which has the
// dispatch key of `type`. They ask `find` for the backend.
XPURT_API void register_c10d_ops(c10::DeviceType type, torch::Library& library,
                                 FindBackend find, const WantedOp& is_wanted);

}  // namespace xpurt

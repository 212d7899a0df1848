// PyTorch's ops of collectives for prototypes: see Note [Collectives of prototypes].
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "distributed/c10d_ops.h"
#include "prototype/prototype_backend.h"
#include "prototype/prototype_calls.h"
#include "prototype/prototype_parts.h"

namespace xpurt {
namespace {

using c10::DeviceType;

// Found by a function without a state.
template <DeviceType type>
BackendPointer backend_of(c10d::ProcessGroup& group) {
  return backend_or_made(
      group, type, c10d::ProcessGroup::BackendType::CUSTOM,
      [](const BackendPointer& gloo) {
        return c10::make_intrusive<PrototypeBackend>(backend_around(gloo));
      });
}

FindBackend finder_of(DeviceType type) {
  switch (type) {
    case DeviceType::IPU:
      return &backend_of<DeviceType::IPU>;
    case DeviceType::HPU:
      return &backend_of<DeviceType::HPU>;
    case DeviceType::MTIA:
      return &backend_of<DeviceType::MTIA>;
    case DeviceType::MAIA:
      return &backend_of<DeviceType::MAIA>;
    case DeviceType::XLA:
      return &backend_of<DeviceType::XLA>;
    default:
      return &backend_of<DeviceType::PrivateUse1>;
  }
}

}  // namespace

// PyTorch has kernels for PrivateUse1, which these replace: its own raise an error in a
// group that has gloo alone.
void register_collectives(const PrototypeDevice& device) {
  auto& dispatcher = c10::Dispatcher::singleton();
  const WithoutOverrideWarning silent;
  const FindBackend find = finder_of(device.type());
  for (const c10::DispatchKey layout :
       {c10::DispatchKey::Dense, c10::DispatchKey::Sparse}) {
    const c10::DispatchKey own = device.own_key(layout);
    const bool is_sparse = layout == c10::DispatchKey::Sparse;
    auto* kept =
        new torch::Library(torch::Library::IMPL, "c10d", own, __FILE__, __LINE__);
    register_c10d_ops(device.type(), *kept, find, [&](const std::string& name) {
      if (is_sparse && name != "allreduce_") return false;
      const auto op = dispatcher.findSchema({"c10d::" + name, ""});
      return op && !has_vendor_kernel(*op, own);
    });
  }
}

}  // namespace xpurt

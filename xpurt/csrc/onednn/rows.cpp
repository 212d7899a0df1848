#include "onednn/rows.h"

#include <c10/util/Exception.h>

#include "onednn/device.h"
#include "stream/capture.h"

namespace xpurt {
namespace {

struct NamedMaker {
  const char* name;
  PrimitiveMaker make;
};
constexpr NamedMaker kMakers[] = {
    {"batch_norm", &onednn_batch_norm},
    {"batch_norm_backward", &onednn_batch_norm_backward},
    {"layer_norm", &onednn_layer_norm},
    {"layer_norm_backward", &onednn_layer_norm_backward},
    {"average", &onednn_average},
    {"average_backward", &onednn_average_backward},
};

}  // namespace

OnednnDevice& PrimitiveCall::onednn() const {
  return OnednnDevice::of(*stream.ordinal().devices[position]);
}

PrimitiveMaker find_primitive(const std::string& name) {
  if (name.empty()) return nullptr;
  for (const NamedMaker& each : kMakers) {
    if (name == each.name) return each.make;
  }
  TORCH_CHECK(false, "no primitive is called ", name);
}

ReadyPrimitive ready_primitive(PrimitiveMaker make, const PrimitiveCall& call) {
  // The primitives were measured only on CPUs. For captures see Note [Capture].
  const bool is_cpu = call.stream.ordinal().devices[call.position]->is_cpu;
  if (!is_cpu || is_capturing(call.stream) || !call.onednn().is_known()) return {};
  return onednn_checked([&] { return make(call); }, "make a primitive");
}

ReadyPrimitive ready_plan(std::shared_ptr<const OnednnPlan> plan,
                          const PrimitiveCall& call, std::vector<at::Tensor> tensors) {
  if (!plan->possible) return {};
  return [plan = std::move(plan), tensors = std::move(tensors), &device = call.onednn(),
          &stream = call.stream, position = call.position] {
    onednn_checked([&] { run_plan(*plan, device, stream, position, tensors); }, "run ",
                   plan->name, " on ", tensors[0].sizes());
  };
}

}  // namespace xpurt

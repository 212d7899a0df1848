// Primitives of oneDNN that take the place of a row's steps, for the calls that they
// compute as PyTorch does.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "op/custom_kernel_call.h"
#include "stream/stream.h"

namespace xpurt {

class OnednnDevice;
struct OnednnPlan;

// One call of a row, by the names of its schema, its results and its scratch.
class PrimitiveCall {
 public:
  PrimitiveCall(const c10::FunctionSchema& schema, const c10::IValue* arguments,
                const CustomKernelCall& tensors, size_t position, Stream& at)
      : position(position),
        stream(at),
        schema_(schema),
        arguments_(arguments),
        tensors_(tensors) {}

  const size_t position;
  Stream& stream;

  // Undefined: not given, or there is none.
  at::Tensor tensor(const std::string& name) const {
    const at::Tensor* found = tensors_.find(name);
    return found == nullptr ? at::Tensor() : *found;
  }
  const c10::IValue& value(const std::string& name) const {
    return arguments_[schema_.argumentIndexWithName(name).value()];
  }
  // Of the op, by its name: "aten::avg_pool3d_backward".
  bool is_3d() const { return schema_.name().find("3d") != std::string::npos; }
  OnednnDevice& onednn() const;

 private:
  const c10::FunctionSchema& schema_;
  const c10::IValue* arguments_;
  const CustomKernelCall& tensors_;
};

// Submits what was made ready; empty: oneDNN is not for the call.
using ReadyPrimitive = std::function<void()>;
using PrimitiveMaker = ReadyPrimitive (*)(const PrimitiveCall& call);

// The one that a row names; nullptr for a row that names none.
PrimitiveMaker find_primitive(const std::string& name);

// Throws what oneDNN has to say if it can't make a primitive that it offers.
ReadyPrimitive ready_primitive(PrimitiveMaker make, const PrimitiveCall& call);

// For makers: the plan with its tensors, in the order of its arguments.
ReadyPrimitive ready_plan(std::shared_ptr<const OnednnPlan> plan,
                          const PrimitiveCall& call, std::vector<at::Tensor> tensors);

// The makers. Scratch of the rows is `variances`: what the forward passes write, and
// for the gradients 1 / rstd^2, which has eps in it already.
ReadyPrimitive onednn_batch_norm(const PrimitiveCall& call);
ReadyPrimitive onednn_batch_norm_backward(const PrimitiveCall& call);
ReadyPrimitive onednn_layer_norm(const PrimitiveCall& call);
ReadyPrimitive onednn_layer_norm_backward(const PrimitiveCall& call);
ReadyPrimitive onednn_average(const PrimitiveCall& call);
ReadyPrimitive onednn_average_backward(const PrimitiveCall& call);

}  // namespace xpurt

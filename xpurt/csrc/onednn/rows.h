// Primitives of oneDNN that replace a row's steps, for calls that they compute as
// PyTorch does.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "op/custom_kernel_call.h"
#include "stream/stream.h"

namespace xpurt {

class OnednnDevice;
struct OnednnPlan;

// One call of a row: arguments by their names in the schema, results and scratch by the
// row's names.
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

  // The tensor of that name; undefined if it was not given or does not exist.
  at::Tensor tensor(const std::string& name) const {
    const at::Tensor* found = tensors_.find(name);
    return found == nullptr ? at::Tensor() : *found;
  }
  const c10::IValue& value(const std::string& name) const {
    return arguments_[schema_.argumentIndexWithName(name).value()];
  }
  // Whether the op is 3-dimensional, by its name: "aten::avg_pool3d_backward".
  bool is_3d() const { return schema_.name().find("3d") != std::string::npos; }
  OnednnDevice& onednn() const;

 private:
  const c10::FunctionSchema& schema_;
  const c10::IValue* arguments_;
  const CustomKernelCall& tensors_;
};

// Submits a prepared primitive; empty if oneDNN does not compute the call.
using ReadyPrimitive = std::function<void()>;
using PrimitiveMaker = ReadyPrimitive (*)(const PrimitiveCall& call);

// The maker of that name; nullptr for an empty name. Throws if there is none of the
// name.
PrimitiveMaker find_primitive(const std::string& name);

// Runs the maker. Empty on devices other than CPUs, and in captures. Throws oneDNN's
// error if a supported primitive cannot be made.
ReadyPrimitive ready_primitive(PrimitiveMaker make, const PrimitiveCall& call);

// For makers: submits the plan with its tensors, in the order of its arguments.
ReadyPrimitive ready_plan(std::shared_ptr<const OnednnPlan> plan,
                          const PrimitiveCall& call, std::vector<at::Tensor> tensors);

// The makers. The rows' scratch tensor `variances` holds the variances that the forward
// passes write; for the gradients it holds 1 / rstd^2, which already includes eps.
ReadyPrimitive onednn_batch_norm(const PrimitiveCall& call);
ReadyPrimitive onednn_batch_norm_backward(const PrimitiveCall& call);
ReadyPrimitive onednn_layer_norm(const PrimitiveCall& call);
ReadyPrimitive onednn_layer_norm_backward(const PrimitiveCall& call);
ReadyPrimitive onednn_average(const PrimitiveCall& call);
ReadyPrimitive onednn_average_backward(const PrimitiveCall& call);

}  // namespace xpurt

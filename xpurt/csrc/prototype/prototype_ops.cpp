// What the dispatcher calls for ops of a prototype that the vendor has no kernel for.
#include <ATen/TensorOperators.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/bernoulli.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/ones_like.h>
#include <torch/library.h>

#include <algorithm>
#include <array>
#include <memory>

#include "op/gradients_wanted.h"
#include "op/op_record.h"
#include "op/stack_tensors.h"
#include "prototype/prototype_calls.h"
#include "prototype/prototype_parts.h"
#include "prototype/renamed_call.h"

namespace xpurt {
namespace {

using c10::DispatchKey;
using c10::DispatchKeySet;
using c10::IValue;
using c10::OperatorHandle;
using torch::jit::Stack;

IValue* arguments_of(const OperatorHandle& op, Stack* stack) {
  return stack->data() + (stack->size() - op.schema().arguments().size());
}

// The device of the results: one that is asked for, or that of the first tensor. None
// if a device of another type is asked for.
std::optional<c10::Device> device_of(const PrototypeDevice& device,
                                     const OperatorHandle& op,
                                     const IValue* arguments) {
  std::optional<c10::Device> found;
  for (size_t i = 0; i < op.schema().arguments().size(); ++i) {
    const IValue& value = arguments[i];
    if (value.isDevice()) {
      const c10::Device asked = value.toDevice();
      if (asked.type() != device.type()) return std::nullopt;
      return device.own(asked.has_index() ? asked.index() : device.current());
    }
    for_each_tensor(value, [&](const at::Tensor& each) {
      if (!found && each.defined() && each.device().type() == device.type()) {
        found = each.device();
      }
    });
  }
  return found.value_or(device.own(device.current()));
}

// A random op without a generator draws from the default one of the prototype.
void set_generator(const OperatorHandle& op, IValue* arguments, c10::Device own) {
  static const auto type = c10::OptionalType::create(c10::GeneratorType::get());
  const auto& schema = op.schema().arguments();
  for (size_t i = 0; i < schema.size(); ++i) {
    if (arguments[i].isNone() && *schema[i].type() == *type) {
      arguments[i] = prototype_generator(own);
    }
  }
}

// Runs `op` with the arguments on the stack on the device behind. `host_kernel`: what
// xpu calls in place of the CPU's kernel, if that is wrong for some arguments; or null.
void run_behind(const PrototypeDevice& device, const OperatorHandle& op, Stack* stack,
                OpCalls& calls, HostKernel host_kernel = nullptr) {
  const CountedCall counted(calls);
  IValue* arguments = arguments_of(op, stack);
  const std::optional<c10::Device> results = device_of(device, op, arguments);
  const c10::Device own = results.value_or(device.own(device.current()));
  set_generator(op, arguments, own);
  RenamedCall call(device, own);
  const OpRecord* record = device.copies() ? &op_record(op) : nullptr;
  for (size_t i = 0; i < op.schema().arguments().size(); ++i) {
    // What is not copied may be marked as written. Not all libraries mark it.
    const bool written = record == nullptr || record->written[i] || !record->is_aten_op;
    arguments[i] = call.to_behind(std::move(arguments[i]), written);
  }
  if (computes_more_for_gradients(op.schema().name())) call.mark_gradients();
  {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
    if (host_kernel != nullptr) {
      host_kernel(op, DispatchKeySet(DispatchKey::CPU), stack);
    } else {
      op.callBoxed(stack);
    }
  }
  call.finish_arguments();
  calls.bytes_copied.fetch_add(call.bytes_copied(), std::memory_order_relaxed);
  if (!results) return;
  const size_t first = stack->size() - op.schema().returns().size();
  for (size_t i = first; i < stack->size(); ++i) {
    (*stack)[i] = call.to_own(std::move((*stack)[i]));
  }
}

OpCalls& calls_behind(const PrototypeDevice& device, const std::string& op) {
  return op_calls(device, op, ComputedBy::device_behind);
}

class RunBehind final : public c10::OperatorKernel {
 public:
  RunBehind(const PrototypeDevice& device, const OperatorHandle& op, DispatchKey layout)
      : device_(device), calls_(calls_behind(device, toString(op.operator_name()))) {
    const bool is_on_cpu = device.key_behind(layout) == DispatchKey::CPU &&
                           op.hasKernelForDispatchKey(DispatchKey::CPU);
    if (is_on_cpu && has_host_kernel(op)) host_kernel_ = op_record(op).host_kernel;
  }

  void operator()(const OperatorHandle& op, DispatchKeySet, Stack* stack) {
    run_behind(device_, op, stack, calls_, host_kernel_);
  }

 private:
  const PrototypeDevice& device_;
  OpCalls& calls_;
  HostKernel host_kernel_ = nullptr;
};

class RunAnyBehind final : public c10::OperatorKernel {
 public:
  explicit RunAnyBehind(const PrototypeDevice& device) : device_(device) {}

  void operator()(const OperatorHandle& op, DispatchKeySet, Stack* stack) {
    run_behind(device_, op, stack, calls_behind(device_, toString(op.operator_name())));
  }

 private:
  const PrototypeDevice& device_;
};

// PyTorch calls these for the convolutions of device types that it does not know. Their
// arguments are those of the op `as`, but for the sizes of the bias, which the backward
// op takes after the weight.
class RunConvolution final : public c10::OperatorKernel {
 public:
  RunConvolution(const PrototypeDevice& device, const char* as)
      : device_(device),
        as_(c10::Dispatcher::singleton().findSchemaOrThrow(as, "")),
        calls_(calls_behind(device, as)) {}

  void operator()(const OperatorHandle& op, DispatchKeySet, Stack* stack) {
    const size_t missing =
        as_.schema().arguments().size() - op.schema().arguments().size();
    if (missing == 1) {
      const auto first =
          stack->end() - static_cast<ptrdiff_t>(op.schema().arguments().size());
      const int64_t channels = first->toTensor().size(1);  // of the result's gradient
      stack->insert(first + kAfterWeight, c10::List<int64_t>({channels}));
    }
    run_behind(device_, as_, stack, calls_);
  }

 private:
  static constexpr ptrdiff_t kAfterWeight = 3;

  const PrototypeDevice& device_;
  const OperatorHandle as_;
  OpCalls& calls_;
};

// The cells of recurrent layers. PyTorch fuses them on PrivateUse1 and has no CPU
// kernel for the fused form. xpu's is made of other ops, which run on any device.
class RunCell final : public c10::OperatorKernel {
 public:
  explicit RunCell(OpRecord& record) : record_(record) {}

  void operator()(const OperatorHandle& op, DispatchKeySet keys, Stack* stack) {
    record_.host_kernel(op, keys, stack);
  }

 private:
  OpRecord& record_;
};

bool is_cell(const OperatorHandle& op) {
  return op.operator_name().name.starts_with("aten::_thnn_fused_") &&
         has_host_kernel(op);
}

// The ops of SyncBatchNorm, which PyTorch has for GPUs alone. xpu's kernels, too, are
// made of other ops.
class RunComposed final : public c10::OperatorKernel {
 public:
  explicit RunComposed(c10::SafeKernelFunction kernel) : kernel_(std::move(kernel)) {}

  void operator()(const OperatorHandle& op, DispatchKeySet keys, Stack* stack) {
    kernel_.callBoxed(op, keys, stack);
  }

 private:
  const c10::SafeKernelFunction kernel_;
};

bool is_of_sync_batch_norm(const OperatorHandle& op) {
  constexpr std::array kNames{"aten::batch_norm_stats", "aten::batch_norm_elemt",
                              "aten::batch_norm_gather_stats_with_counts",
                              "aten::batch_norm_backward_reduce",
                              "aten::batch_norm_backward_elemt"};
  const c10::OperatorName& name = op.operator_name();
  return name.overload_name.empty() && std::ranges::count(kNames, name.name) > 0 &&
         op.hasKernelForDispatchKey(DispatchKey::XPU);
}

// PyTorch calls it on PrivateUse1 instead of ops that take a generator.
std::tuple<at::Tensor, at::Tensor> native_dropout(const at::Tensor& input, double p,
                                                  std::optional<bool> train) {
  const bool drops = train.value_or(true) && p > 0;
  const at::Tensor ones = at::ones_like(input, at::MemoryFormat::Contiguous);
  if (!drops) return {input.clone(), ones.to(at::kBool)};
  const at::Tensor mask = at::bernoulli(ones.mul_(1 - p));
  const double scale = p < 1 ? 1 / (1 - p) : 0;
  return {input * mask * scale, mask.to(at::kBool)};
}

// Looks at sizes and strides alone: PyTorch calls it with fake tensors, which have no
// memory, and runs ops without a meta kernel on what it returns. PyTorch's own one
// keeps no strides on some device types.
at::Tensor empty_like(const at::Tensor& self, std::optional<c10::ScalarType> dtype,
                      std::optional<c10::Layout> layout,
                      std::optional<c10::Device> device, std::optional<bool> pin_memory,
                      std::optional<c10::MemoryFormat> memory_format) {
  const at::Tensor like = at::empty_strided(self.sizes(), self.strides(),
                                            self.options().device(c10::kMeta));
  return at::empty_like(like, dtype, layout, device.value_or(self.device()), pin_memory,
                        memory_format);
}

// Streams of the host's memory have no work, and memory of a SYCL device waits for all
// queues of the device before it is freed.
void record_no_stream(at::Tensor&, c10::Stream) {}

// Ops whose composite kernel asks the device's own one for the work, at the same name,
// or the type of the device.
bool is_needed(const OperatorHandle& op) {
  const std::string& name = op.operator_name().name;
  return name == "aten::copy_" || name == "aten::set_" ||
         // Not with all device types do these keep strides, or compute at all.
         name == "aten::_to_copy" || name == "aten::mode";
}

// PyTorch's kernel calls empty_like, and so takes fake tensors. xpu has one of its own.
bool is_best_composite(const OperatorHandle& op) {
  return op.operator_name() == c10::OperatorName("aten::zeros_like", "");
}

void register_layout(const PrototypeDevice& device, DispatchKey layout) {
  const DispatchKey own = device.own_key(layout);
  auto& dispatcher = c10::Dispatcher::singleton();
  auto* kept =
      new torch::Library(torch::Library::IMPL, "aten", own, __FILE__, __LINE__);
  for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
    if (!name.name.starts_with("aten::")) continue;
    const auto op = dispatcher.findSchema(name);
    if (!op || op->hasKernelForDispatchKey(own)) continue;
    // Made of other ops, also for autograd.
    if (op->hasKernelForDispatchKey(DispatchKey::CompositeImplicitAutograd)) continue;
    if (layout == DispatchKey::Dense && is_best_composite(*op)) continue;
    if (layout == DispatchKey::Dense && is_cell(*op)) {
      kept->impl(toString(name).c_str(),
                 torch::CppFunction::makeFromBoxedFunctor(
                     std::make_unique<RunCell>(op_record(*op))));
      continue;
    }
    if (layout == DispatchKey::Dense && is_of_sync_batch_norm(*op)) {
      kept->impl(toString(name).c_str(),
                 torch::CppFunction::makeFromBoxedFunctor(std::make_unique<RunComposed>(
                     op->getComputedKernelForDispatchKey(DispatchKey::XPU))));
      continue;
    }
    const bool is_known =
        op->hasKernelForDispatchKey(device.key_behind(layout)) ||
        (layout == DispatchKey::Dense && op->hasKernelForDispatchKey(DispatchKey::CPU));
    if (!is_known && !(layout == DispatchKey::Dense && is_needed(*op))) continue;
    kept->impl(toString(name).c_str(),
               torch::CppFunction::makeFromBoxedFunctor(
                   std::make_unique<RunBehind>(device, *op, layout)));
  }
  auto* any = new torch::Library(torch::Library::IMPL, "_", own, __FILE__, __LINE__);
  any->fallback(
      torch::CppFunction::makeFromBoxedFunctor(std::make_unique<RunAnyBehind>(device)));
}

}  // namespace

void register_ops(const PrototypeDevice& device) {
  const DispatchKey own = device.own_key(DispatchKey::Dense);
  auto* kept =
      new torch::Library(torch::Library::IMPL, "aten", own, __FILE__, __LINE__);
  const auto add = [&](const std::string& name, auto kernel) {
    const auto op =
        c10::Dispatcher::singleton().findSchemaOrThrow(("aten::" + name).c_str(), "");
    if (!op.hasKernelForDispatchKey(own)) kept->impl(name.c_str(), std::move(kernel));
  };
  add("native_dropout", TORCH_FN(native_dropout));
  add("empty_like", TORCH_FN(empty_like));
  if (device.type_behind() == c10::kCPU)
    add("record_stream", TORCH_FN(record_no_stream));
  for (const auto& [name, as] :
       {std::pair{"convolution_overrideable", "aten::convolution"},
        std::pair{"convolution_backward_overrideable", "aten::convolution_backward"}}) {
    add(name, torch::CppFunction::makeFromBoxedFunctor(
                  std::make_unique<RunConvolution>(device, as)));
  }
  for (const DispatchKey layout : kTensorLayouts) register_layout(device, layout);
  // Ops of other libraries without a derivative: PyTorch has this for most types.
  const DispatchKey autograd = c10::getAutogradKeyFromBackend(
      c10::toBackendComponent(device.own_key(DispatchKey::Dense)));
  if (!c10::Dispatcher::singleton().hasBackendFallbackForDispatchKey(autograd)) {
    auto* any =
        new torch::Library(torch::Library::IMPL, "_", autograd, __FILE__, __LINE__);
    any->fallback(torch::CppFunction::makeFallthrough());
  }
}

}  // namespace xpurt

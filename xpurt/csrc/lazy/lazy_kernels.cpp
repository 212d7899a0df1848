#include "lazy/lazy_kernels.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <algorithm>
#include <atomic>
#include <string_view>
#include <unordered_set>

#include "host/mutex.h"
#include "lazy/collective_call.h"
#include "lazy/kernels/batch_norm.h"
#include "lazy/kernels/collectives.h"
#include "lazy/kernels/composite_kernels.h"
#include "lazy/kernels/device_copy.h"
#include "lazy/kernels/functional_again.h"
#include "lazy/kernels/functional_kernels.h"
#include "lazy/kernels/linear.h"
#include "lazy/kernels/list_writes.h"
#include "lazy/kernels/mixed_copy.h"
#include "lazy/kernels/out_checks.h"
#include "lazy/list_ops.h"
#include "lazy/one_thread.h"
#include "host/no_warnings.h"
#include "lazy/random_call.h"
#include "lazy/real_devices.h"
#include "lazy/traced_call.h"

namespace xpurt {
namespace {

using at::Tensor;
using c10::DispatchKey;
using c10::IValue;
using c10::OperatorHandle;
using c10::OperatorName;
using torch::jit::Stack;

void native_batch_norm(const OperatorHandle& op, c10::DispatchKeySet, Stack* stack) {
  if (updates_statistics(*stack)) return normalize_and_update(stack);
  traced_call(op, {}, stack);
}

// A random op that writes to its argument, within a kernel for all devices.
void fill_in_place(const OperatorHandle& op, c10::DispatchKeySet, Stack* stack) {
  std::string name = op.schema().name();
  name.pop_back();
  std::string overload = op.schema().overload_name();
  if (name == "aten::normal") name = "aten::normal_functional";
  if (name == "aten::bernoulli" && overload == "float") overload = "p";
  const Tensor self =
      torch::jit::peek(*stack, 0, op.schema().arguments().size()).toTensor();
  traced_call(
      c10::Dispatcher::singleton().findSchemaOrThrow(name.c_str(), overload.c_str()),
      {}, stack);
  self.copy_(torch::jit::pop(*stack).toTensor());
  torch::jit::push(*stack, self);
}

// The core has a kernel of its own for the derivative, made of batch_norm. It records
// none for an empty batch. PyTorch's kernel for all devices records one.
void native_group_norm(const OperatorHandle& op, c10::DispatchKeySet, Stack* stack) {
  op.callBoxedForDispatchKey(DispatchKey::Autograd, *stack);
}

bool writes(const OperatorHandle& op) {
  return std::ranges::any_of(op.schema().arguments(), [](const c10::Argument& each) {
    return each.alias_info() != nullptr && each.alias_info()->isWrite();
  });
}

// Nodes of xpurt take the place of the core's for these. The core computes some of them
// on the CPU, or by writing to new memory of a lazy tensor, which is not seen where the
// device has a copy of it. For others its own code for the sizes of results is wrong in
// some cases, or does not check the arguments. Its random ops draw when they run.
const std::unordered_set<std::string_view> kReplaced{"aten::randperm",
                                                     "aten::ones_like",
                                                     "aten::zeros_like",
                                                     "aten::arange",
                                                     "aten::nonzero",
                                                     "aten::pixel_shuffle",
                                                     "aten::pixel_unshuffle",
                                                     "aten::narrow_copy",
                                                     "aten::linalg_pinv",
                                                     "aten::diag_embed",
                                                     "aten::diagonal_backward",
                                                     "aten::select_backward",
                                                     "aten::slice_backward",
                                                     "aten::_chunk_cat",
                                                     "aten::std",
                                                     "aten::embedding",
                                                     "aten::trace",
                                                     "aten::index_select",
                                                     "aten::gather",
                                                     "aten::as_strided_scatter",
                                                     "aten::native_layer_norm",
                                                     "aten::uniform",
                                                     "aten::normal_functional",
                                                     "aten::random",
                                                     "aten::bernoulli",
                                                     "aten::native_dropout",
                                                     "aten::masked_fill.Tensor"};

// Ops with a kernel of PyTorch's for all devices that is not for lazy tensors: it
// changes the tensor that it is given.
const std::unordered_set<std::string_view> kDecomposed{
    "aten::set", "aten::resize", "aten::resize_as", "aten::_resize_output",
    "aten::_lazy_clone"};

bool has_kernel(const OperatorHandle& op, DispatchKey key) {
  return op.hasKernelForDispatchKey(key);
}

// Note [Kernels for all devices]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// Many ops have a kernel that is made of other ops (CompositeExplicitAutograd). It runs
// beneath functionalization. If it writes to a view of new memory, a lazy tensor keeps
// what it was before: it has no memory that a view could share. So such an op is one
// node. Exceptions are ops that take numbers, which are parameters of the graph if the
// core records them, those that make a tensor on a device, but for random ones, and
// those with lists for fused kernels.
bool is_whole(const OperatorHandle& op) {
  const c10::FunctionSchema& schema = op.schema();
  const std::string& name = schema.name();
  if (schema.hasAnyAliasInfo() || schema.returns().empty() ||
      kDecomposed.contains(name))
    return false;
  for (const char* prefix : {"aten::_foreach_", "aten::_fused_", "aten::_amp_"}) {
    if (name.starts_with(prefix)) return false;
  }
  const auto returns_tensors =
      std::ranges::all_of(schema.returns(), [](const c10::Argument& each) {
        return each.type()->isSubtypeOf(*c10::TensorType::get()) ||
               each.type()->isSubtypeOf(*c10::ListType::ofTensors());
      });
  bool takes_tensor = false;
  for (const c10::Argument& each : schema.arguments()) {
    const c10::TypePtr type =
        each.type()->kind() == c10::TypeKind::OptionalType
            ? each.type()->expectRef<c10::OptionalType>().getElementType()
            : each.type();
    if (type->kind() == c10::TypeKind::NumberType ||
        (type->kind() == c10::TypeKind::DeviceObjType && !draws(op)))
      return false;
    takes_tensor |= type->kind() == c10::TypeKind::TensorType ||
                    *type == *c10::ListType::ofTensors();
  }
  return takes_tensor && returns_tensors;
}

bool runs_on_device(const OperatorHandle& op) {
  const c10::Device device(lazy_device_type());
  return op.hasComputedKernelForDispatchKey(DispatchKey::XPU) ||
         op.hasComputedKernelForDispatchKey(
             c10::computeDispatchKey(std::nullopt, at::kStrided, device));
}

// A view that is copied, such as `t_copy`. The core finds its shape by a meta function
// in Python.
bool is_copied_view(const OperatorHandle& op) {
  return op.schema().name().ends_with("_copy") &&
         has_kernel(op, DispatchKey::CompositeExplicitAutogradNonFunctional);
}

// An op of PyTorch's, or one that a program defines.
bool is_lacking(const OperatorHandle& op) {
  if (writes(op) || has_kernel(op, DispatchKey::CompositeImplicitAutograd))
    return false;
  const std::string& name = op.schema().name();
  if (kReplaced.contains(name) || kReplaced.contains(toString(op.operator_name())) ||
      is_copied_view(op) || is_list_op(op))
    return true;
  if (has_kernel(op, DispatchKey::Lazy)) return false;
  if (name.starts_with("_c10d_functional")) return false;  // it needs a token
  if (!name.starts_with("aten::")) return !op.schema().hasAnyAliasInfo();
  if (has_kernel(op, DispatchKey::CompositeExplicitAutograd)) return is_whole(op);
  return runs_on_device(op);
}

struct Registered {
  Mutex mutex{Rank::lazy_ops};  // locked before the dispatcher's mutex
  std::unordered_set<OperatorName> known;
};

Registered& registered() {
  static auto* const leaked = new Registered;
  return *leaked;
}

std::atomic<bool> ops_were_defined{true};

struct OpsAreDefined final : c10::OpRegistrationListener {
  // The dispatcher's lock is held, so nothing can be registered here.
  void onOperatorRegistered(const OperatorHandle&) override { ops_were_defined = true; }
  void onOperatorDeregistered(const OperatorHandle&) override {}
};

// Kernels of the Lazy key live as long as the process.
void give_kernel(const OperatorName& op, c10::KernelFunction kernel,
                 DispatchKey key = DispatchKey::Lazy) {
  static auto* const leaked = new std::vector<c10::RegistrationHandleRAII>;
  leaked->push_back(c10::Dispatcher::singleton().registerImpl(
      op, key, std::move(kernel), std::nullopt, nullptr, "records it"));
}

}  // namespace

bool register_kernels_of_type() {
  ops_were_defined = true;
  return register_lazy_kernels();
}

bool register_lazy_kernels() {
  if (C10_LIKELY(!ops_were_defined.load(std::memory_order_acquire))) return false;
  auto& dispatcher = c10::Dispatcher::singleton();
  const std::vector<OperatorName> names = dispatcher.getAllOpNames();
  const NoWarnings none;
  const std::lock_guard<Mutex> lock(registered().mutex);
  if (!ops_were_defined.exchange(false)) return true;  // another thread did it
  bool gave = false;
  for (const OperatorName& name : names) {
    const auto op = dispatcher.findSchema(name);
    if (!op.has_value()) continue;
    if (!runs_on_device(*op)) {
      // Its kernels are registered after its definition.
      ops_were_defined = ops_were_defined || !name.name.starts_with("aten::");
    } else if (registered().known.insert(name).second && is_lacking(*op)) {
      give_kernel(name, c10::KernelFunction::makeFromBoxedFunction<&traced_call>());
      gave = true;
    }
  }
  return gave;
}

void init_lazy_kernels() {
  define_placed_ops();
  define_collective_forms();
  {
    const NoWarnings none;
    lock_lazy_kernels();
  }
  register_lazy_kernels();
  {
    const NoWarnings none;
    give_kernel({"aten::native_batch_norm", ""},
                c10::KernelFunction::makeFromBoxedFunction<&native_batch_norm>());
    give_kernel({"aten::native_group_norm", ""},
                c10::KernelFunction::makeFromBoxedFunction<&native_group_norm>(),
                DispatchKey::AutogradLazy);
    for (const OperatorName& op :
         {OperatorName("aten::uniform_", ""), OperatorName("aten::normal_", ""),
          OperatorName("aten::random_", ""), OperatorName("aten::random_", "from"),
          OperatorName("aten::random_", "to"),
          OperatorName("aten::bernoulli_", "float"),
          OperatorName("aten::bernoulli_", "Tensor"),
          OperatorName("aten::exponential_", ""), OperatorName("aten::geometric_", ""),
          OperatorName("aten::cauchy_", ""), OperatorName("aten::log_normal_", "")}) {
      give_kernel(op, c10::KernelFunction::makeFromBoxedFunction<&fill_in_place>());
    }
    register_functional_kernels();
    register_linear();
    register_list_writes();
    register_out_checks();
    register_composite_kernels();
    register_lazy_collectives();
    register_mixed_copy();
    register_device_copy();
    register_functional_again();
  }
  static auto* const watched = new c10::RegistrationHandleRAII(
      c10::Dispatcher::singleton().addRegistrationListener(
          std::make_unique<OpsAreDefined>()));
  (void)watched;
}

}  // namespace xpurt

#include "op/op_record.h"

#include <ATen/core/jit_type.h>

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "device/device.h"
#include "host/mutex.h"
#include "op/gradients_wanted.h"

namespace xpurt {
namespace {

struct Records {
  SharedMutex mutex{Rank::op_records};
  std::unordered_map<c10::OperatorHandle, std::unique_ptr<OpRecord>> known;
  std::vector<std::unique_ptr<OpRecord>> retired;  // of unregistered ops
};

Records& records() {
  static Records* const leaked = new Records;
  return *leaked;
}

void run_on_cpu(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                torch::jit::Stack* stack) {
  op.redispatchBoxed(keys, stack);
}

struct Named {
  std::string_view op;
  std::string_view argument;
};

// Arguments that an op writes although its schema does not declare it: those found by
// tests/lazy_copies/audit_silent_writes.py, and those of related ops.
constexpr Named kSilentlyWritten[] = {
    {"aten::native_batch_norm", "running_mean"},
    {"aten::native_batch_norm", "running_var"},
    {"aten::batch_norm", "running_mean"},
    {"aten::batch_norm", "running_var"},
    {"aten::instance_norm", "running_mean"},
    {"aten::instance_norm", "running_var"},
    {"aten::_batch_norm_impl_index", "running_mean"},
    {"aten::_batch_norm_impl_index", "running_var"},
    {"aten::batch_norm_update_stats", "running_mean"},
    {"aten::batch_norm_update_stats", "running_var"},
    {"aten::batch_norm_update_stats.out", "running_mean"},
    {"aten::batch_norm_update_stats.out", "running_var"},
    {"aten::batch_norm_gather_stats.out", "running_mean"},
    {"aten::batch_norm_gather_stats.out", "running_var"},
    {"aten::batch_norm_gather_stats_with_counts.out", "running_mean"},
    {"aten::batch_norm_gather_stats_with_counts.out", "running_var"},
    {"aten::batch_norm_gather_stats", "running_mean"},
    {"aten::batch_norm_gather_stats", "running_var"},
    {"aten::batch_norm_gather_stats_with_counts", "running_mean"},
    {"aten::batch_norm_gather_stats_with_counts", "running_var"},
    {"aten::native_batch_norm.out", "running_mean"},
    {"aten::native_batch_norm.out", "running_var"},
    {"aten::mkldnn_rnn_layer_backward", "workspace"},
    {"aten::mkldnn_rnn_layer_backward.out", "workspace"},
    {"aten::rrelu_with_noise", "noise"},
    {"aten::rrelu_with_noise.out", "noise"},
    {"aten::rrelu_with_noise_", "noise"},
    {"onednn::qlinear_pointwise.binary", "other"},
    {"onednn::qlinear_pointwise.binary_tensor", "other"},
    {"quantized::leaky_relu", "qx"},
    {"quantized::relu6", "qx"},
};

// Arguments that may be CPU tensors of any size beside xpu ones, as on other
// accelerators.
constexpr Named kAnywhere[] = {
    {"aten::index.Tensor", "indices"},
    {"aten::index.Tensor_out", "indices"},
    {"aten::_unsafe_index.Tensor", "indices"},
    {"aten::index_put", "indices"},
    {"aten::index_put_", "indices"},
    {"aten::index_put.out", "indices"},
    {"aten::_index_put_impl_", "indices"},
    {"aten::_index_put_impl", "indices"},
    {"aten::_index_put_impl.out", "indices"},
    {"aten::_unsafe_index_put", "indices"},
    {"aten::_pack_padded_sequence", "lengths"},
    {"aten::_pack_padded_sequence_backward", "batch_sizes"},
    {"aten::_ctc_loss.Tensor", "input_lengths"},
    {"aten::_ctc_loss.Tensor", "target_lengths"},
    {"aten::_ctc_loss.Tensor", "targets"},
    {"aten::_ctc_loss_backward.Tensor", "input_lengths"},
    {"aten::_ctc_loss_backward.Tensor", "target_lengths"},
    {"aten::_ctc_loss_backward.Tensor", "targets"},
    {"aten::_foreach_addcdiv.Tensor", "scalars"},
    {"aten::_foreach_addcdiv_.Tensor", "scalars"},
    {"aten::_foreach_addcmul.Tensor", "scalars"},
    {"aten::_foreach_addcmul_.Tensor", "scalars"},
    {"aten::_nested_view_from_buffer", "nested_size"},
    {"aten::_nested_view_from_buffer", "nested_strides"},
    {"aten::_nested_view_from_buffer", "offsets"},
    {"aten::_nested_from_padded", "cpu_nested_shape_example"},
};

// Returns that are CPU tensors on every device of the operands.
constexpr std::pair<std::string_view, size_t> kOnHost[] = {
    {"aten::_pack_padded_sequence", 1},
    {"aten::_nested_tensor_size", 0},
    {"aten::_nested_tensor_strides", 0},
    {"aten::_nested_tensor_storage_offsets", 0},
};

constexpr std::string_view kWritesInAnyOrder[] = {
    "aten::_index_put_impl_",
    "aten::put",
    "aten::put_",
    "aten::put.out",
    "aten::max_unpool2d",
    "aten::max_unpool2d.out",
    "aten::max_unpool3d",
    "aten::max_unpool3d.out",
};

bool is_named(const OpRecord& record, const c10::Argument& argument, Named named) {
  return named.op == record.name && named.argument == argument.name();
}

}  // namespace

void check_host_kernel(const OpRecord& record, c10::DeviceIndex index,
                       c10::DispatchKeySet keys) {
  // A CPU kernel may have been registered later, or only for a layout.
  TORCH_CHECK_NOT_IMPLEMENTED(
      record.has_cpu_kernel ||
          record.op.hasComputedKernelForDispatchKey(keys.highestPriorityTypeId()),
      record.name, " is not implemented on xpu:", static_cast<int>(index), " (",
      ordinal(index).home_device().name,
      "): it has no kernel there, and PyTorch has none for the CPU, which would do "
      "instead. Use other ops in its place, or register a kernel for it with "
      "torch.library, for \"xpu\" or \"cpu\".");
}

OpRecord::OpRecord(const c10::OperatorHandle& handle)
    : op(handle), name(toString(handle.operator_name())), host_kernel(&run_on_cpu) {
  const c10::FunctionSchema& schema = op.schema();
  arguments = schema.arguments().size();
  returns = schema.returns().size();
  on_host.resize(returns);
  for (const auto& [named, position] : kOnHost) {
    if (named == name) on_host[position] = true;
  }
  for (size_t i = 0; i < arguments; ++i) {
    const c10::Argument& argument = schema.arguments()[i];
    const auto matches = [&](Named named) { return is_named(*this, argument, named); };
    const bool declared =
        argument.alias_info() != nullptr && argument.alias_info()->isWrite();
    written.push_back(declared || std::ranges::any_of(kSilentlyWritten, matches));
    anywhere.push_back(std::ranges::any_of(kAnywhere, matches));
    const std::string type = argument.type()->str();
    if (type == "Generator?" || type == "Generator") generator = static_cast<int>(i);
    if (argument.name() == "pin_memory") pin_memory = static_cast<int>(i);
    if (argument.name() == "accumulate") accumulate = static_cast<int>(i);
    if (type == "Device?" || type == "Device") devices.push_back(static_cast<int>(i));
    const bool as_shape = argument.name() == "normalized_shape";
    if (i > 0 && (as_shape || argument.name() == "dim")) {
      dims = static_cast<int>(i);
      dims_as_shape = as_shape;
    }
    // Batch statistics are sums over lines. Without them the op is elementwise.
    if (argument.name() == "training" && name.find("batch_norm") != std::string::npos) {
      dims = static_cast<int>(i);
    }
  }
  // CompositeExplicitAutograd: the kernel of copy_, for example, is for all devices.
  has_cpu_kernel =
      handle.hasKernelForDispatchKey(c10::DispatchKey::CPU) ||
      handle.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd);
  may_resize = !handle.operator_name().name.ends_with('_');
  is_aten_op = name.starts_with("aten::");
  writes_in_any_order =
      std::ranges::find(kWritesInAnyOrder, name) != std::end(kWritesInAnyOrder);
  uses_requires_grad = computes_more_for_gradients(name);
  mixes_devices = name.starts_with("c10d::");
}

OpRecord& op_record(const c10::OperatorHandle& op) {
  {
    std::shared_lock<SharedMutex> lock(records().mutex);
    const auto found = records().known.find(op);
    if (found != records().known.end()) return *found->second;
  }
  auto made = std::make_unique<OpRecord>(op);
  std::unique_lock<SharedMutex> lock(records().mutex);
  return *records().known.try_emplace(op, std::move(made)).first->second;
}

void retire_op_record(const c10::OperatorHandle& op) {
  std::unique_lock<SharedMutex> lock(records().mutex);
  auto found = records().known.extract(op);
  if (!found.empty()) records().retired.push_back(std::move(found.mapped()));
}

bool has_host_kernel(const c10::OperatorHandle& op) {
  std::shared_lock<SharedMutex> lock(records().mutex);
  const auto found = records().known.find(op);
  return found != records().known.end() &&
         found->second->host_kernel != static_cast<HostKernel>(&run_on_cpu);
}

bool set_host_kernels(std::initializer_list<HostKernelEntry> entries) {
  for (const auto& [name, overload, kernel] : entries) {
    OpRecord& record =
        op_record(c10::Dispatcher::singleton().findSchemaOrThrow(name, overload));
    record.host_kernel = kernel;
    record.has_cpu_kernel = true;
  }
  return true;
}

void for_each_op_record(const std::function<void(OpRecord&)>& visit) {
  std::shared_lock<SharedMutex> lock(records().mutex);
  for (auto& [op, record] : records().known) visit(*record);
  for (auto& record : records().retired) visit(*record);
}

}  // namespace xpurt

// Rows that compute each element of the result from one element of each operand.
#include <ATen/TensorIterator.h>
#include <ATen/ops/empty.h>

#include "op/element_type.h"
#include "op/row_call.h"
#include "program/program.h"
#include "rows/launch.h"
#include "rows/pointwise_arguments.h"
#include "rows/pointwise_operands.h"
#include "rows/run_split.h"

namespace xpurt {
namespace {

using at::Tensor;
using c10::ScalarType;
using torch::jit::Stack;

// The boundaries between shards along one dimension are multiples of this: a page, or
// more.
constexpr int64_t kElementsApart = 4096;

// Sizes and strides (in elements) as arguments of a kernel: `size[dims]`, then for each
// tensor `stride[dims]`; dimension 0 varies fastest.
using Layout = c10::SmallVector<int64_t, 24>;

class PointwiseCall final : public RowCall {
 public:
  PointwiseCall(const PointwiseSpec& spec, const Binding& binding)
      : spec_(spec), binding_(binding), call_(spec, binding) {}

  bool read(const Stack& stack) {
    if (!call_.read(stack) || !call_.fit()) return false;
    call_.add_cost(call_.output, &cost_);
    return can_run(ordinal(call_.device), cost_);
  }

  void run(const c10::OperatorHandle&, Stack* stack, RowRun& run) override;

 private:
  // Position of each operand in the iterator.
  using Numbers = std::array<int, kMaxOperands>;

  at::TensorIterator iterator(Numbers* numbers) const;
  std::string key(const std::string& layout, ScalarType output) const;
  void submit(const at::TensorIterator& iter, const Numbers& numbers, size_t position,
              const Shard* shard) const;
  ShardList shards(const OpCost& cost, const at::TensorIterator& iter, Stream& stream,
                   RowRun& run) const;

  const PointwiseSpec& spec_;
  const Binding& binding_;
  PointwiseArguments call_;
};

// "row;template;layout;operands;output and compute type;params;variant": letters of
// types, S a scalar, T a CPU tensor of one element, N none; params are P or N.
std::string PointwiseCall::key(const std::string& layout, ScalarType output) const {
  std::string key = std::to_string(spec_.index);
  key += ";pointwise;";
  key += layout;
  key += ';';
  for (int k = 0; k < binding_.operands; ++k) {
    const Tensor* tensor = call_.tensors[k];
    if (!call_.present[k]) {
      key += 'N';
    } else if (call_.is_scalar(k)) {
      key += tensor == nullptr ? 'S' : 'T';
    } else {
      key += letter_of(tensor->scalar_type());
    }
  }
  key += ';';
  key += letter_of(output);
  key += letter_of(computed_in(call_.compute));
  key += ';';
  for (size_t p = 0; p < spec_.params.size(); ++p)
    key += call_.has_param[p] ? 'P' : 'N';
  key += ';';
  key += call_.variant;
  return key;
}

// The strides of an operand of the iteration, in elements, fastest dimension first.
Layout strides_of(const at::TensorIterator& iter, int at) {
  Layout strides(std::max(iter.ndim(), 1), 1);
  const int64_t bytes = iter.element_size(at);
  for (int d = 0; d < iter.ndim(); ++d) strides[d] = iter.strides(at)[d] / bytes;
  return strides;
}

// A shard of an operand, along the slowest dimension of the iteration.
Tensor shard_of(const at::TensorIterator& iter, int at, const Shard& shard) {
  Layout sizes(iter.shape().begin(), iter.shape().end());
  const Layout strides = strides_of(iter, at);
  sizes.back() = shard.rows();
  const at::TensorBase& tensor = iter.tensor_base(at);
  return view_of(tensor, sizes, strides,
                 tensor.storage_offset() + shard.begin * strides.back());
}

ShardList PointwiseCall::shards(const OpCost& cost, const at::TensorIterator& iter,
                                Stream& stream, RowRun& run) const {
  if (iter.ndim() == 0 || !may_split(cost, stream, run)) return {};
  const int last = iter.ndim() - 1;
  const Layout strides = strides_of(iter, 0);
  if (!is_disjoint_along(iter.shape(), strides, last)) return {};
  // No shard may read what another one writes.
  const at::TensorBase& output = iter.tensor_base(0);
  for (int at = 1; at < iter.ntensors(); ++at) {
    const at::TensorBase& input = iter.tensor_base(at);
    if (!input.is_alias_of(output)) continue;
    if (input.const_data_ptr() != output.const_data_ptr() ||
        strides_of(iter, at) != strides) {
      return {};
    }
  }
  // See Note [Rows of a pointwise op].
  const bool by_rows = cost.rows < cost.elements && cost.elements == iter.numel();
  const int64_t apart = by_rows ? cost.elements / cost.rows : kElementsApart;
  return split(cost, iter.shape()[last], last == 0 ? apart : 1, stream, run);
}

// Submits all of the iteration, or a shard of it.
void PointwiseCall::submit(const at::TensorIterator& iter, const Numbers& numbers,
                           size_t position, const Shard* shard) const {
  Launch launch(current_stream(call_.device), position);
  const int dims = std::max(iter.ndim(), 1);
  Layout layout(dims, 1);
  for (int d = 0; d < iter.ndim(); ++d) layout[d] = iter.shape()[d];
  if (shard != nullptr) layout[dims - 1] = shard->rows();
  std::string shape = std::to_string(dims);
  const auto add_tensor = [&](int at, Access access) {
    if (shard == nullptr) {
      launch.tensor(iter.tensor_base(at), access);
    } else {
      launch.tensor(shard_of(iter, at, *shard), access);
    }
    const Layout strides = strides_of(iter, at);
    layout.append(strides.begin(), strides.end());
    shape += strides[0] == 1 ? '1' : strides[0] == 0 ? '0' : 'n';
  };
  // If an in-place op reads its memory, that is also one of the operands below.
  add_tensor(0, Access::write);
  for (int k = 0; k < binding_.operands; ++k) {
    if (!spec_.uses_operand(k) || !call_.present[k]) continue;
    if (call_.is_scalar(k)) {
      add_scalar(launch, scalar_beside_halves(spec_, call_.scalars[k], call_.compute),
                 computed_in(call_.compute));
    } else {
      add_tensor(numbers[k], Access::read);
    }
  }
  for (size_t p = 0; p < spec_.params.size(); ++p) {
    if (!call_.has_param[p]) continue;
    add_scalar(launch, call_.params[p], computed_in(call_.compute));
  }
  launch.structure(layout.data(), layout.size() * sizeof(int64_t));
  size_t beyond = 1;  // elements in dimensions 2 and up
  for (int d = 2; d < dims; ++d) beyond *= static_cast<size_t>(layout[d]);
  const size_t second = dims > 1 ? static_cast<size_t>(layout[1]) : 1;
  const ScalarType output = iter.tensor_base(0).scalar_type();
  launch.submit(
      kernel_for(launch.device(), key(shape, output)),
      cover(launch.device(), {static_cast<size_t>(layout[0]), second, beyond}));
}

at::TensorIterator PointwiseCall::iterator(Numbers* numbers) const {
  at::TensorIteratorConfig config;
  config.set_check_mem_overlap(true).check_all_same_dtype(false);
  const Tensor undefined;
  config.add_output(call_.output != nullptr ? *call_.output : undefined);
  config.declare_static_dtype(call_.result);
  int count = 1;
  // The tensor of an in-place op takes part in the result's shape even if its values
  // are not read.
  // A number has no place in the kernel's layout. Without elements there is no kernel,
  // and PyTorch's iterator chooses other strides for the result if a number takes part.
  bool is_empty = false;
  for (int k = 0; k < binding_.operands; ++k) {
    is_empty |= !call_.is_scalar(k) && call_.tensors[k]->numel() == 0;
  }
  const bool compares = spec_.result == ResultRule::boolean;
  const auto add_input = [&](int k) {
    if (call_.is_scalar(k)) {
      if (is_empty && call_.present[k] && (compares || call_.tensors[k] != nullptr)) {
        const auto options = at::TensorOptions(at::kFloat);
        config.add_owned_const_input(
            at::empty({}, options.device(c10::DeviceType::XPU, call_.device)));
      }
      return;
    }
    config.add_const_input(*call_.tensors[k]);
    (*numbers)[k] = count++;
  };
  // If the operands' strides differ, the result is laid out like the first one.
  add_input(spec_.leading);
  for (int k = 0; k < binding_.operands; ++k) {
    if (k != spec_.leading) add_input(k);
  }
  return config.build();
}

void PointwiseCall::run(const c10::OperatorHandle&, Stack* stack, RowRun& run) {
  Numbers numbers{};
  at::TensorIterator iter = iterator(&numbers);
  Tensor output = iter.output();
  if (iter.numel() > 0) {
    Stream& stream = current_stream(call_.device);
    OpCost all;
    call_.add_cost(&output, &all);
    run_whole_or_split(
        shards(all, iter, stream, run), all, stream, run,
        [&](size_t position) { submit(iter, numbers, position, nullptr); },
        [&](const Shard& shard) { submit(iter, numbers, shard.position, &shard); });
  }
  give_result(stack, binding_.slots.size(), std::move(output));
}

struct PointwiseKind final : PointwiseSpec {
  using PointwiseSpec::PointwiseSpec;

  std::unique_ptr<RowKernel> make(const Overload& overload) const override {
    Binding binding;
    if (!overload.returns_one_tensor() || !bind(*this, overload, &binding) ||
        binding.operands > kMaxOperands || params.size() > kMaxParams) {
      return nullptr;
    }
    return make_row<PointwiseCall>(
        prior_of(*this), static_cast<const PointwiseSpec&>(*this), std::move(binding));
  }
};

[[maybe_unused]] const bool knows_pointwise = register_kind<PointwiseKind>("pointwise");

}  // namespace
}  // namespace xpurt

// Rows that compute each element of the result from one element of each operand.
#include <ATen/MemoryOverlap.h>
#include <ATen/TensorIterator.h>
#include <ATen/native/TypeProperties.h>
#include <c10/core/DefaultDtype.h>

#include <algorithm>

#include "element_type.h"
#include "launch.h"
#include "pointwise_operands.h"
#include "policy.h"
#include "program.h"
#include "row_spec.h"
#include "split.h"

namespace xpurt {
namespace {

using at::Tensor;
using c10::ScalarType;
using torch::jit::Stack;

constexpr int kMaxOperands = 4;
constexpr int kMaxParams = 4;

// The arguments of one call, as the row means them.
struct PointwiseCall {
  // nullptr: a scalar, or absent. A CPU tensor has one element: a scalar with a type.
  std::array<const Tensor*, kMaxOperands> tensors{};
  std::array<c10::Scalar, kMaxOperands> scalars;
  std::array<bool, kMaxOperands> present{};
  std::array<c10::Scalar, kMaxParams> params;
  std::array<bool, kMaxParams> has_param{};
  std::string variant;
  const Tensor* output = nullptr;  // that the caller gave
  c10::DeviceIndex device = -1;
  ScalarType compute = ScalarType::Undefined;  // before widening of half
  ScalarType result = ScalarType::Undefined;
};

bool is_usable(const Tensor& tensor) {
  return tensor.defined() && tensor.layout() == c10::kStrided && !tensor.is_neg() &&
         !tensor.is_conj() && !tensor._is_zerotensor() &&
         letter_of(tensor.scalar_type()) != 0;
}

// Boundaries between the pieces of a line: a page, or more.
constexpr int64_t kElementsApart = 4096;

// Sizes and strides (in elements) as a kernel takes them: `size[dims]`, then for
// each tensor `stride[dims]`; dimension 0 varies fastest.
using Layout = c10::SmallVector<int64_t, 24>;

class PointwiseRow final : public RowKernel {
 public:
  PointwiseRow(const RowSpec& spec, Binding binding)
      : RowKernel(prior_of(spec)), spec_(spec), binding_(std::move(binding)) {}

  bool accepts(const Stack& stack) const override {
    PointwiseCall call;
    return read(stack, &call) && fits(call) &&
           can_run(ordinal(call.device), cost(call, call.output));
  }

  OpCost cost(const Stack& stack) const override {
    PointwiseCall call;
    read(stack, &call);
    return cost(call, call.output);
  }

  void run(const c10::OperatorHandle&, Stack* stack, RowRun& run) const override;

  Tier tier() const override { return Tier::sycl; }

 private:
  static bool is_integral(ScalarType type) {
    return c10::isIntegralType(type, /*includeBool=*/true);
  }

  bool read(const Stack& stack, PointwiseCall* call) const;
  bool read_operand(const c10::IValue& value, int k, PointwiseCall* call) const;
  bool find_types(PointwiseCall* call) const;
  bool fits(const PointwiseCall& call) const;
  OpCost cost(const PointwiseCall& call, const Tensor* output) const;
  bool uses(int k) const { return (spec_.uses >> k & 1) != 0; }
  bool is_condition(int k) const { return (spec_.conditions >> k & 1) != 0; }
  std::string key(const PointwiseCall& call, const std::string& layout,
                  ScalarType output) const;
  void submit(const PointwiseCall& call, const at::TensorIterator& iter,
              const std::array<int, kMaxOperands>& numbers, size_t position,
              const Piece* piece) const;
  PieceList pieces(const OpCost& cost, const at::TensorIterator& iter, Stream& stream,
                   RowRun& run) const;

  const RowSpec& spec_;
  const Binding binding_;
};

bool PointwiseRow::read_operand(const c10::IValue& value, int k,
                                PointwiseCall* call) const {
  if (value.isNone()) return true;
  call->present[k] = true;
  if (!value.isTensor()) {
    call->scalars[k] = value.toScalar();
    return !call->scalars[k].isSymbolic();
  }
  const Tensor& tensor = value.toTensor();
  if (!tensor.defined()) {
    call->present[k] = false;
    return true;
  }
  if (!is_usable(tensor)) return false;
  call->tensors[k] = &tensor;
  if (tensor.device().type() == c10::DeviceType::CPU) {
    if (tensor.dim() != 0) return false;
    call->scalars[k] = tensor.item();  // its type has a say, its value is a scalar's
    return true;
  }
  if (tensor.device().type() != c10::DeviceType::XPU) return false;
  if (call->device >= 0 && call->device != tensor.device().index()) return false;
  call->device = tensor.device().index();
  return true;
}

bool PointwiseRow::read(const Stack& stack, PointwiseCall* call) const {
  const size_t first = stack.size() - binding_.slots.size();
  for (size_t i = 0; i < binding_.slots.size(); ++i) {
    const Slot& slot = binding_.slots[i];
    const c10::IValue& value = stack[first + i];
    switch (slot.role) {
      case Slot::operand:
        if (!read_operand(value, slot.index, call)) return false;
        break;
      case Slot::param:
        if (value.isNone()) break;
        call->params[slot.index] = value.toScalar();
        call->has_param[slot.index] = true;
        break;
      case Slot::variant:
        if (value.isString()) call->variant += value.toStringRef();
        if (value.isBool() && value.toBool()) call->variant += "true";
        break;
      case Slot::ignored:
      case Slot::output:
        break;
    }
  }
  if (call->device < 0) return false;
  if (binding_.output >= 0) call->output = &stack[first + binding_.output].toTensor();
  return find_types(call);
}

bool PointwiseRow::find_types(PointwiseCall* call) const {
  if (spec_.compute == ComputeRule::self || spec_.compute == ComputeRule::source) {
    const Tensor* decides = call->tensors[spec_.compute == ComputeRule::self ? 0 : 1];
    if (decides == nullptr) return false;
    call->compute = decides->scalar_type();
  } else {
    at::native::ResultTypeState state;
    for (int k = 0; k < binding_.operands; ++k) {
      if (is_condition(k) || !call->present[k]) continue;
      state = call->tensors[k] != nullptr
                  ? at::native::update_result_type_state(*call->tensors[k], state)
                  : at::native::update_result_type_state(call->scalars[k], state);
    }
    call->compute = at::native::result_type(state);
    if (spec_.compute == ComputeRule::floating && is_integral(call->compute)) {
      call->compute = c10::get_default_dtype_as_scalartype();
    }
  }
  if (spec_.result == ResultRule::boolean) {
    call->result = ScalarType::Bool;
  } else if (spec_.result == ResultRule::self) {
    if (call->tensors[0] == nullptr) return false;
    call->result = call->tensors[0]->scalar_type();
  } else if (spec_.result == ResultRule::real) {
    call->result = c10::toRealValueType(call->compute);
  } else {
    call->result = call->compute;
  }
  return true;
}

bool PointwiseRow::fits(const PointwiseCall& call) const {
  const char letter = letter_of(call.compute);
  if (letter == 0 || spec_.dtypes.find(letter) == std::string::npos) return false;
  if (spec_.variants.empty() ? !call.variant.empty()
                             : std::find(spec_.variants.begin(), spec_.variants.end(),
                                         call.variant) == spec_.variants.end()) {
    return false;
  }
  const bool divides_integers = spec_.raises_on_zero && is_integral(call.compute);
  for (int k = 0; k < binding_.operands; ++k) {
    if (!uses(k) || !call.present[k]) continue;
    if (const Tensor* tensor = call.tensors[k]) {
      if ((spec_.zero_dim >> k & 1) != 0 && tensor->dim() != 0) return false;
      // The native kernel refuses zeros; to look for them here is to wait for them.
      if (divides_integers && k == 1 && !tensor->is_cpu()) return false;
      if (tensor->is_complex() && !c10::isComplexType(call.compute)) return false;
      const bool differs = tensor->scalar_type() != call.compute;
      if (spec_.same_type && !is_condition(k) && differs) return false;
    }
    if (subtracts_bool(spec_, call.tensors[k], call.scalars[k])) return false;
    if (is_condition(k)) {
      if (call.tensors[k] == nullptr || call.tensors[k]->is_cpu()) return false;
      const ScalarType type = call.tensors[k]->scalar_type();
      if (type != ScalarType::Bool && type != ScalarType::Byte) return false;
    } else if (call.tensors[k] == nullptr || call.tensors[k]->is_cpu()) {
      if (!scalar_fits(call.scalars[k], call.compute)) return false;
      if (divides_integers && k == 1 && call.scalars[k].toDouble() == 0) return false;
    }
  }
  for (size_t p = 0; p < spec_.params.size(); ++p) {
    if (!call.has_param[p]) continue;
    const c10::Scalar& param = call.params[p];
    if (!scalar_fits(param, call.compute)) return false;
    if (spec_.raises_on_negative && param.toDouble() < 0) return false;
    if (is_integral(call.compute) && param.isFloatingPoint()) return false;
    if (param.isBoolean() && call.compute != ScalarType::Bool) return false;
  }
  if (call.output == nullptr) return true;
  const Tensor& output = *call.output;
  if (c10::isComplexType(call.compute)) {
    // PyTorch says that it leaves out what is imaginary, or refuses to put it back.
    if (spec_.result == ResultRule::self && !output.is_complex()) return false;
    if (spec_.result == ResultRule::real && output.is_complex()) return false;
  }
  // PyTorch's kernels of some ops write to an expanded tensor, those of others refuse.
  if (at::has_internal_overlap(output) == at::MemOverlap::Yes) return false;
  // PyTorch's kernels of some ops convert what goes to out=, those of others refuse.
  const bool is_out = binding_.slots[binding_.output].role == Slot::output;
  if ((is_out || spec_.conditions != 0) && output.scalar_type() != call.result) {
    return false;
  }
  return is_usable(output) && output.device().type() == c10::DeviceType::XPU &&
         output.device().index() == call.device &&
         (spec_.compute == ComputeRule::source || spec_.compute == ComputeRule::self ||
          c10::canCast(call.result, output.scalar_type()));
}

OpCost PointwiseRow::cost(const PointwiseCall& call, const Tensor* output) const {
  OpCost cost;
  cost.flops = spec_.flops;
  for (int k = 0; k < binding_.operands; ++k) {
    const Tensor* tensor = call.tensors[k];
    if (tensor == nullptr || !uses(k) || tensor->is_cpu()) continue;
    cost.elements = std::max(cost.elements, tensor->numel());
    cost.read(*tensor);
  }
  if (output != nullptr) {
    cost.elements = std::max(cost.elements, output->numel());
    cost.write(*output);
  }
  cost.rows = cost.elements;  // most are one row after all
  cost.needs_fp64 = cost.needs_fp64 || is_double(call.compute);
  return cost;
}

// "row;template;layout;operands;output and compute type;params;variant": letters of
// types, S a scalar, T a CPU tensor of one element, N none; params are P or N.
std::string PointwiseRow::key(const PointwiseCall& call, const std::string& layout,
                              ScalarType output) const {
  std::string key = std::to_string(spec_.index);
  key += ";pointwise;";
  key += layout;
  key += ';';
  for (int k = 0; k < binding_.operands; ++k) {
    const Tensor* tensor = call.tensors[k];
    if (!call.present[k]) {
      key += 'N';
    } else if (tensor == nullptr || tensor->is_cpu()) {
      key += tensor == nullptr ? 'S' : 'T';
    } else {
      key += letter_of(tensor->scalar_type());
    }
  }
  key += ';';
  key += letter_of(output);
  key += letter_of(computed_in(call.compute));
  key += ';';
  for (size_t p = 0; p < spec_.params.size(); ++p) key += call.has_param[p] ? 'P' : 'N';
  key += ';';
  key += call.variant;
  return key;
}

// The strides of an operand of the iteration, in elements, fastest dimension first.
Layout strides_of(const at::TensorIterator& iter, int at) {
  Layout strides(std::max(iter.ndim(), 1), 1);
  const int64_t bytes = iter.element_size(at);
  for (int d = 0; d < iter.ndim(); ++d) strides[d] = iter.strides(at)[d] / bytes;
  return strides;
}

// Part of an operand, along the slowest dimension of the iteration.
Tensor piece_of(const at::TensorIterator& iter, int at, const Piece& piece) {
  Layout sizes(iter.shape().begin(), iter.shape().end());
  const Layout strides = strides_of(iter, at);
  sizes.back() = piece.rows();
  const at::TensorBase& tensor = iter.tensor_base(at);
  return view_of(tensor, sizes, strides,
                 tensor.storage_offset() + piece.begin * strides.back());
}

PieceList PointwiseRow::pieces(const OpCost& cost, const at::TensorIterator& iter,
                               Stream& stream, RowRun& run) const {
  if (iter.ndim() == 0 || !may_split(cost, stream, run)) return {};
  const int last = iter.ndim() - 1;
  const Layout strides = strides_of(iter, 0);
  if (!has_apart(iter.shape(), strides, last)) return {};
  // What one piece writes, no other one may read.
  const at::TensorBase& output = iter.tensor_base(0);
  for (int at = 1; at < iter.ntensors(); ++at) {
    const at::TensorBase& input = iter.tensor_base(at);
    if (!input.is_alias_of(output)) continue;
    if (input.const_data_ptr() != output.const_data_ptr() ||
        strides_of(iter, at) != strides) {
      return {};
    }
  }
  return split(cost, iter.shape()[last], last == 0 ? kElementsApart : 1, stream, run);
}

// Submits all of the iteration, or a piece of it.
void PointwiseRow::submit(const PointwiseCall& call, const at::TensorIterator& iter,
                          const std::array<int, kMaxOperands>& numbers, size_t position,
                          const Piece* piece) const {
  Launch launch(current_stream(call.device), position);
  const int dims = std::max(iter.ndim(), 1);
  Layout layout(dims, 1);
  for (int d = 0; d < iter.ndim(); ++d) layout[d] = iter.shape()[d];
  if (piece != nullptr) layout[dims - 1] = piece->rows();
  std::string shape = std::to_string(dims);
  const auto add_tensor = [&](int at, Access access) {
    if (piece == nullptr) {
      launch.tensor(iter.tensor_base(at), access);
    } else {
      launch.tensor(piece_of(iter, at, *piece), access);
    }
    const Layout strides = strides_of(iter, at);
    layout.append(strides.begin(), strides.end());
    shape += strides[0] == 1 ? '1' : strides[0] == 0 ? '0' : 'n';
  };
  // What an in-place op reads, it has to find where it writes.
  add_tensor(0, call.output != nullptr ? Access::read_write : Access::write);
  for (int k = 0; k < binding_.operands; ++k) {
    if (!uses(k) || !call.present[k]) continue;
    const Tensor* tensor = call.tensors[k];
    if (tensor == nullptr || tensor->is_cpu()) {
      add_scalar(launch, scalar_beside_halves(spec_, call.scalars[k], call.compute),
                 computed_in(call.compute));
    } else {
      add_tensor(numbers[k], Access::read);
    }
  }
  for (size_t p = 0; p < spec_.params.size(); ++p) {
    if (!call.has_param[p]) continue;
    add_scalar(launch, call.params[p], computed_in(call.compute));
  }
  launch.structure(layout.data(), layout.size() * sizeof(int64_t));
  size_t beyond = 1;  // elements in dimensions 2 and up
  for (int d = 2; d < dims; ++d) beyond *= static_cast<size_t>(layout[d]);
  const size_t second = dims > 1 ? static_cast<size_t>(layout[1]) : 1;
  const ScalarType output = iter.tensor_base(0).scalar_type();
  launch.submit(kernel_for(launch.device(), key(call, shape, output)),
                cover({static_cast<size_t>(layout[0]), second, beyond}));
}

void PointwiseRow::run(const c10::OperatorHandle&, Stack* stack, RowRun& run) const {
  PointwiseCall call;
  TORCH_INTERNAL_ASSERT(read(*stack, &call));

  at::TensorIteratorConfig config;
  config.set_check_mem_overlap(true).check_all_same_dtype(false);
  const Tensor undefined;
  config.add_output(call.output != nullptr ? *call.output : undefined);
  config.declare_static_dtype(call.result);
  // Position of each operand in the iterator; an in-place op's own tensor has a
  // say in the shape even where its values are not read.
  std::array<int, kMaxOperands> position{};
  int count = 1;
  const auto add_input = [&](int k) {
    const Tensor* tensor = call.tensors[k];
    if (tensor == nullptr || tensor->is_cpu()) return;
    config.add_const_input(*tensor);
    position[k] = count++;
  };
  // Where the operands' strides differ, the result follows the first one.
  add_input(spec_.leading);
  for (int k = 0; k < binding_.operands; ++k) {
    if (k != spec_.leading) add_input(k);
  }
  at::TensorIterator iter = config.build();
  Tensor output = iter.output();

  if (iter.numel() > 0) {
    Stream& stream = current_stream(call.device);
    const OpCost all = cost(call, &output);
    const PieceList parts = pieces(all, iter, stream, run);
    if (parts.empty()) {
      submit(call, iter, position, choose_device(all, stream, run), nullptr);
    } else {
      run_pieces(parts, stream.ordinal(), run, [&](const Piece& piece) {
        submit(call, iter, position, piece.position, &piece);
      });
    }
  }
  torch::jit::drop(*stack, binding_.slots.size());
  torch::jit::push(*stack, std::move(output));
}

}  // namespace

std::unique_ptr<RowKernel> make_pointwise(const RowSpec& spec, Binding binding) {
  if (binding.operands > kMaxOperands) return nullptr;
  if (spec.params.size() > kMaxParams) return nullptr;
  return std::make_unique<PointwiseRow>(spec, std::move(binding));
}

}  // namespace xpurt

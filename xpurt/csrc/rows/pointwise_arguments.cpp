#include "rows/pointwise_arguments.h"

#include <ATen/MemoryOverlap.h>
#include <ATen/native/TypeProperties.h>
#include <c10/core/DefaultDtype.h>

#include <algorithm>

#include "op/element_type.h"
#include "rows/pointwise_operands.h"

namespace xpurt {
namespace {

using at::Tensor;
using c10::ScalarType;

bool is_usable(const Tensor& tensor) {
  return tensor.defined() && tensor.layout() == c10::kStrided && !tensor.is_neg() &&
         !tensor.is_conj() && !tensor._is_zerotensor() &&
         letter_of(tensor.scalar_type()) != 0;
}

bool is_integral(ScalarType type) {
  return c10::isIntegralType(type, /*includeBool=*/true);
}

// Note [Rows of a pointwise op]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// After coalescing, most calls have a single dimension, and could be divided anywhere.
// But the ops around them are divided by rows: products, softmax, reductions,
// convolutions. If the boundaries differ, bytes are copied across them at each step of
// the chain. So a pointwise op is divided by the rows of its operand, too, and shares
// its boundary with them. With few rows that would be coarse: 16 rows on two equal
// devices lose up to 6%. Fewer rows are divided by elements.
constexpr int64_t kFewestRows = 16;

int64_t rows_of_shards(const Tensor* leading, int64_t elements) {
  const bool has_rows = leading != nullptr && leading->dim() > 1 &&
                        leading->numel() == elements && leading->size(0) >= kFewestRows;
  return has_rows ? leading->size(0) : elements;
}

}  // namespace

bool PointwiseArguments::read_operand(const c10::IValue& value, int k) {
  if (value.isNone()) return true;
  present[k] = true;
  if (!value.isTensor()) {
    scalars[k] = value.toScalar();
    return !scalars[k].isSymbolic();
  }
  const Tensor& tensor = value.toTensor();
  if (!tensor.defined()) {
    present[k] = false;
    return true;
  }
  if (!is_usable(tensor)) return false;
  tensors[k] = &tensor;
  if (tensor.device().type() == c10::DeviceType::CPU) {
    if (tensor.dim() != 0) return false;
    scalars[k] = tensor.item();  // a scalar, but with the tensor's part in promotion
    return true;
  }
  if (tensor.device().type() != c10::DeviceType::XPU) return false;
  if (device >= 0 && device != tensor.device().index()) return false;
  device = tensor.device().index();
  return true;
}

bool PointwiseArguments::read(const torch::jit::Stack& stack) {
  const size_t first = stack.size() - binding.slots.size();
  for (size_t i = 0; i < binding.slots.size(); ++i) {
    const Slot& slot = binding.slots[i];
    const c10::IValue& value = stack[first + i];
    switch (slot.role) {
      case Slot::operand:
        if (!read_operand(value, slot.index)) return false;
        break;
      case Slot::param:
        if (value.isNone()) break;
        params[slot.index] = value.toScalar();
        has_param[slot.index] = true;
        break;
      case Slot::variant:
        if (value.isString()) variant += value.toStringRef();
        if (value.isBool() && value.toBool()) variant += "true";
        break;
      case Slot::ignored:
      case Slot::output:
        break;
    }
  }
  if (device < 0) return false;
  if (binding.output >= 0) output = &stack[first + binding.output].toTensor();
  return find_types();
}

bool PointwiseArguments::find_types() {
  if (spec.compute == ComputeRule::self || spec.compute == ComputeRule::source) {
    const Tensor* decides = tensors[spec.compute == ComputeRule::self ? 0 : 1];
    if (decides == nullptr) return false;
    compute = decides->scalar_type();
  } else {
    at::native::ResultTypeState state;
    for (int k = 0; k < binding.operands; ++k) {
      if (spec.is_condition(k) || !present[k]) continue;
      state = tensors[k] != nullptr
                  ? at::native::update_result_type_state(*tensors[k], state)
                  : at::native::update_result_type_state(scalars[k], state);
    }
    compute = at::native::result_type(state);
    if (spec.compute == ComputeRule::floating && is_integral(compute)) {
      compute = c10::get_default_dtype_as_scalartype();
    }
  }
  if (spec.result == ResultRule::boolean) {
    result = ScalarType::Bool;
  } else if (spec.result == ResultRule::self) {
    if (tensors[0] == nullptr) return false;
    result = tensors[0]->scalar_type();
  } else if (spec.result == ResultRule::real) {
    result = c10::toRealValueType(compute);
  } else {
    result = compute;
  }
  return true;
}

bool PointwiseArguments::operand_fits(int k) const {
  const bool divides_integers = spec.raises_on_zero && is_integral(compute);
  if (const Tensor* tensor = tensors[k]) {
    // PyTorch reads an operand of zero dimensions before it writes.
    if ((spec.zero_dim >> k & 1) != 0 &&
        (tensor->dim() != 0 ||
         (output != nullptr && k > 0 && tensor->is_alias_of(*output)))) {
      return false;
    }
    // The native kernel rejects zeros; checking for them here would wait for the
    // device.
    if (divides_integers && k == 1 && !tensor->is_cpu()) return false;
    if (tensor->is_complex() && !c10::isComplexType(compute)) return false;
    const bool differs = tensor->scalar_type() != compute;
    if (spec.same_type && !spec.is_condition(k) && differs) return false;
  }
  if (subtracts_bool(spec, tensors[k], scalars[k])) return false;
  if (spec.is_condition(k)) {
    if (is_scalar(k)) return false;
    const ScalarType type = tensors[k]->scalar_type();
    // Of bytes only where() takes a condition.
    return type == ScalarType::Bool || (type == ScalarType::Byte && k == 0);
  }
  if (!is_scalar(k)) return true;
  const bool fits = spec.converts_scalars ? converts(scalars[k], compute)
                                          : scalar_fits(scalars[k], compute);
  return fits && !(divides_integers && k == 1 && scalars[k].toDouble() == 0);
}

bool PointwiseArguments::params_fit() const {
  for (size_t p = 0; p < spec.params.size(); ++p) {
    if (!has_param[p]) continue;
    const c10::Scalar& param = params[p];
    if (!converts(param, compute)) return false;
    if (spec.raises_on_negative && !(param.toDouble() >= 0)) return false;
    if (is_integral(compute) && param.isFloatingPoint()) return false;
    if (param.isBoolean() && compute != ScalarType::Bool) return false;
  }
  return true;
}

bool PointwiseArguments::output_fits() const {
  if (output == nullptr) return true;
  if (c10::isComplexType(compute)) {
    // PyTorch warns that it drops the imaginary part, or raises an error.
    if (spec.result == ResultRule::self && !output->is_complex()) return false;
    if (spec.result == ResultRule::real && output->is_complex()) return false;
  }
  // PyTorch's kernels of some ops write to an expanded tensor; those of others raise.
  if (at::has_internal_overlap(*output) == at::MemOverlap::Yes) return false;
  // PyTorch's kernels of some ops convert the result to the type of out=; others raise.
  const bool is_out = binding.slots[binding.output].role == Slot::output;
  if ((is_out || spec.conditions != 0) && output->scalar_type() != result) {
    return false;
  }
  return is_usable(*output) && output->device().type() == c10::DeviceType::XPU &&
         output->device().index() == device &&
         (spec.compute == ComputeRule::source || spec.compute == ComputeRule::self ||
          c10::canCast(result, output->scalar_type()));
}

bool PointwiseArguments::fit() const {
  if (!spec.has_type(compute)) return false;
  if (spec.variants.empty() ? !variant.empty()
                            : std::find(spec.variants.begin(), spec.variants.end(),
                                        variant) == spec.variants.end()) {
    return false;
  }
  for (int k = 0; k < binding.operands; ++k) {
    if (spec.uses_operand(k) && present[k] && !operand_fits(k)) return false;
  }
  // No bound of clamp is given, which PyTorch's kernel refuses.
  const bool lacks_others =
      binding.operands > 1 && std::none_of(present.begin() + 1, present.end(),
                                           [](bool given) { return given; });
  return !lacks_others && params_fit() && output_fits();
}

void PointwiseArguments::add_cost(const Tensor* written, OpCost* cost) const {
  cost->flops = spec.flops;
  for (int k = 0; k < binding.operands; ++k) {
    const Tensor* tensor = tensors[k];
    if (tensor == nullptr || !spec.uses_operand(k) || tensor->is_cpu()) continue;
    cost->elements = std::max(cost->elements, tensor->numel());
    cost->read(*tensor);
  }
  if (written != nullptr) {
    cost->elements = std::max(cost->elements, written->numel());
    cost->write(*written);
  }
  cost->rows = rows_of_shards(written != nullptr ? written : tensors[spec.leading],
                              cost->elements);
  cost->needs_fp64 = cost->needs_fp64 || is_double(compute);
}

}  // namespace xpurt

// What a pointwise row is, and the arguments of one of its calls.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Scalar.h>

#include <array>

#include "policy.h"
#include "row_spec.h"

namespace xpurt {

struct PointwiseSpec final : RowSpec {
  explicit PointwiseSpec(RowFields& fields);
  std::unique_ptr<RowKernel> make(const Overload& overload) const override;

  ComputeRule compute;
  ResultRule result;
  uint32_t conditions;                // bit k: operand k is a condition, not promoted
  uint32_t uses;                      // bit k: operand k is read
  uint32_t zero_dim;                  // bit k: operand k, if a tensor, has no dimension
  int leading;                        // operand whose strides the result takes first
  bool same_type;                     // PyTorch wants tensors of one type
  bool raises_on_zero;                // native kernels refuse an integral divisor 0
  bool raises_on_negative;            // the same of params
  std::vector<std::string> params;    // scalar arguments that it knows
  std::vector<std::string> variants;  // values of its str and bool arguments
  std::vector<std::string> ignored;   // arguments without influence on the result

  bool uses_operand(int k) const { return (uses >> k & 1) != 0; }
  bool is_condition(int k) const { return (conditions >> k & 1) != 0; }
};

// What an argument of one overload means to a pointwise row.
struct Slot {
  enum Role { operand, param, variant, ignored, output } role;
  int index = 0;  // of the operand or parameter
};

// One overload of a row's op: the roles of its arguments.
struct Binding {
  std::vector<Slot> slots;
  int operands = 0;
  int output = -1;  // position of the tensor that is written; -1: a new one
};

// Binds an overload to a row. False if the row has no meaning for it.
bool bind(const PointwiseSpec& spec, const Overload& overload, Binding* binding);

constexpr int kMaxOperands = 4;
constexpr int kMaxParams = 4;

// The arguments of one call, as the row means them.
struct PointwiseArguments {
  PointwiseArguments(const PointwiseSpec& of, const Binding& bound)
      : spec(of), binding(bound) {}

  const PointwiseSpec& spec;
  const Binding& binding;
  // nullptr: a scalar, or absent. A CPU tensor has one element: a scalar with a type.
  std::array<const at::Tensor*, kMaxOperands> tensors{};
  std::array<c10::Scalar, kMaxOperands> scalars;
  std::array<bool, kMaxOperands> present{};
  std::array<c10::Scalar, kMaxParams> params;
  std::array<bool, kMaxParams> has_param{};
  std::string variant;
  const at::Tensor* output = nullptr;  // that the caller gave
  c10::DeviceIndex device = -1;
  c10::ScalarType compute = c10::ScalarType::Undefined;  // before widening of half
  c10::ScalarType result = c10::ScalarType::Undefined;

  // False if it is no call for a row.
  bool read(const torch::jit::Stack& stack);
  // Whether the row computes such arguments.
  bool fit() const;
  // Adds to an empty cost. `written`: nullptr if it is not there yet.
  void add_cost(const at::Tensor* written, OpCost* cost) const;

  // Whether the kernel gets the operand as a number.
  bool is_scalar(int k) const { return tensors[k] == nullptr || tensors[k]->is_cpu(); }

 private:
  bool read_operand(const c10::IValue& value, int k);
  bool find_types();
  bool operand_fits(int k) const;
  bool params_fit() const;
  bool output_fits() const;
};

}  // namespace xpurt

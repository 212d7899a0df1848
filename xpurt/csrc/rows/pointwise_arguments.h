// The arguments of one call of a pointwise row.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Scalar.h>

#include <array>

#include "op/pointwise_spec.h"
#include "schedule/policy.h"

namespace xpurt {

constexpr int kMaxOperands = 4;
constexpr int kMaxParams = 4;

// The arguments of one call, by their roles in the row.
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
  const at::Tensor* output = nullptr;  // given by the caller
  c10::DeviceIndex device = -1;
  c10::ScalarType compute = c10::ScalarType::Undefined;  // before widening of half
  c10::ScalarType result = c10::ScalarType::Undefined;

  // Reads the arguments from the stack. False if the row cannot compute them.
  bool read(const torch::jit::Stack& stack);
  // Whether the row computes such arguments.
  bool fit() const;
  // Fills in an empty cost. `written`: the result; nullptr if it is not allocated yet.
  void add_cost(const at::Tensor* written, OpCost* cost) const;

  // Whether the kernel receives the operand as a number.
  bool is_scalar(int k) const { return tensors[k] == nullptr || tensors[k]->is_cpu(); }

 private:
  bool read_operand(const c10::IValue& value, int k);
  bool find_types();
  bool operand_fits(int k) const;
  bool params_fit() const;
  bool output_fits() const;
};

}  // namespace xpurt

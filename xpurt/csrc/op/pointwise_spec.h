// The specification of a pointwise row, and the roles of an overload's arguments in it.
#pragma once

#include "op/row_spec.h"

namespace xpurt {

struct PointwiseSpec : RowSpec {
  explicit PointwiseSpec(RowFields& fields);

  ComputeRule compute;
  ResultRule result;
  uint32_t conditions;                // bit k: operand k is a condition, not promoted
  uint32_t uses;                      // bit k: operand k is read
  uint32_t zero_dim;                  // bit k: operand k, if a tensor, has no dimension
  int leading;                        // operand whose strides the result takes first
  bool same_type;                     // PyTorch requires tensors of one type
  bool raises_on_zero;                // native kernels refuse an integral divisor 0
  bool raises_on_negative;            // native kernels refuse negative params
  bool converts_scalars;              // PyTorch converts numbers to the tensors' type
  std::vector<std::string> params;    // scalar arguments of the row
  std::vector<std::string> variants;  // values of its str and bool arguments
  std::vector<std::string> ignored;   // arguments without influence on the result

  bool uses_operand(int k) const { return (uses >> k & 1) != 0; }
  bool is_condition(int k) const { return (conditions >> k & 1) != 0; }
};

// The role of an argument of one overload in a pointwise row.
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

// Binds an overload to a row. False if the row has no role for one of its arguments.
bool bind(const PointwiseSpec& spec, const Overload& overload, Binding* binding);

}  // namespace xpurt

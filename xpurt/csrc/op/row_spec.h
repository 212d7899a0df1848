// The C++ side of a row. Each kind of row has its own specification. The kind's file
// derives it from RowSpec and registers it.
#pragma once

#include <c10/core/ScalarType.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "host/api.h"
#include "op/argument_types.h"
#include "op/row_fields.h"
#include "op/row_kernel.h"

namespace xpurt {

// An overload of a row's op, or of the in-place form of that op.
struct Overload {
  const c10::OperatorHandle& op;
  const std::vector<c10::OperatorHandle>& all;  // the overloads of both ops

  const c10::FunctionSchema& schema() const { return op.schema(); }
  bool returns_one_tensor() const;
  // The overload with the same arguments that returns new tensors.
  XPURT_API std::optional<c10::OperatorHandle> functional() const;
};

// Note [Kinds of rows]
// ~~~~~~~~~~~~~~~~~~~~
// A kind is one file, rows/<kind>.cpp, and a class of rows in Python. The file derives
// a specification from RowSpec. Its constructor takes the keys of the kind's rows
// (BaseRow.described() in Python), and it makes a RowKernel per overload. The file
// registers the kind with register_kind(). No other file lists the kinds.
struct RowSpec {
  explicit RowSpec(RowFields& fields);
  virtual ~RowSpec() = default;

  int index;           // position in the table; the name of the row in kernel keys
  std::string name;    // of the op, without overload and the namespace aten
  std::string dtypes;  // letters of the types that it computes in
  double flops;        // per element
  CostClass cost_class;
  std::vector<std::string> overloads;  // the row's overloads; empty: all

  // The kernel for an overload; nullptr if the row does not implement the overload.
  virtual std::unique_ptr<RowKernel> make(const Overload& overload) const = 0;

  // Throws the error for a fault that a kernel of the row detected while it ran.
  [[noreturn]] virtual void raise_fault() const;

  // Whether the row computes in the type.
  bool has_type(c10::ScalarType type) const;
};

// Registers a kind of row under its name. Called while the library is loaded.
using SpecMaker = std::unique_ptr<RowSpec> (*)(RowFields& fields);
bool register_kind(const std::string& kind, SpecMaker make);

template <typename Spec>
bool register_kind(const std::string& kind) {
  return register_kind(kind, [](RowFields& fields) -> std::unique_ptr<RowSpec> {
    return std::make_unique<Spec>(fields);
  });
}

// The type in which a pointwise row or a reduction computes.
enum class ComputeRule {
  common,    // PyTorch's promotion of all operands
  floating,  // the same, and integers become the default floating type
  self,      // the type of operand 0
  source,    // the type of operand 1
  widened,   // of a reduction: integers are summed in int64
};
ComputeRule take_compute_rule(RowFields& fields);

// The type of the result of a pointwise row or a reduction.
enum class ResultRule {
  compute,
  boolean,
  self,  // the type of operand 0
  real,  // for a complex type, the type of its parts
};
ResultRule take_result_rule(RowFields& fields);

// Whether a row takes a tensor of `type` beside a first tensor of type `first`. With
// `same_type` the two must be equal. A result in another type is left to PyTorch's
// kernel, as some ops convert and others refuse. Results that are indices or bools are
// excepted.
bool takes_type(bool same_type, c10::ScalarType type, c10::ScalarType first,
                bool is_out);

// The prior of an ordinary row of a kind.
RowPrior prior_of(const RowSpec& spec);
// The prior of a row that parses a call to know its amount of work, such as matmul.
RowPrior asked_prior(const RowSpec& spec, double build_us = RowPrior().build_us);

// Makes the rows, binds them to their overloads and registers these with set_row.
// Throws ValueError or TypeError for a row that is invalid for its kind, and then adds
// no row.
void add_rows(std::vector<RowFields> rows);

}  // namespace xpurt

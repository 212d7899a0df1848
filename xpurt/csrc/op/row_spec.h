// A row as C++ sees it. Each kind of rows has a specification of its own, which its
// file derives from RowSpec and registers.
#pragma once

#include <c10/core/ScalarType.h>

#include <memory>
#include <string>
#include <vector>

#include "op/argument_types.h"
#include "op/row_fields.h"
#include "op/row_kernel.h"

namespace xpurt {

// An overload of a row's op, or of the form of that op in place.
struct Overload {
  const c10::OperatorHandle& op;
  const std::vector<c10::OperatorHandle>& all;  // of both ops

  const c10::FunctionSchema& schema() const { return op.schema(); }
  bool returns_one_tensor() const;
};

// Note [Kinds of rows]
// ~~~~~~~~~~~~~~~~~~~~
// A kind is one file, rows/<kind>.cpp, and a class of rows in Python. The file derives
// a specification from RowSpec, whose constructor takes the keys that the rows of the
// kind have (BaseRow.described() in Python), makes a RowKernel per overload, and
// registers the kind with register_kind(). No other file lists the kinds.
struct RowSpec {
  explicit RowSpec(RowFields& fields);
  virtual ~RowSpec() = default;

  int index;           // position in the table; the name of the row in kernel keys
  std::string name;    // of the op, without overload and the namespace aten
  std::string dtypes;  // letters of the types it computes in
  double flops;        // per element
  CostClass cost_class;
  std::vector<std::string> overloads;  // that the row is for; empty: all

  // The kernel for an overload; nullptr if the row is not for it.
  virtual std::unique_ptr<RowKernel> make(const Overload& overload) const = 0;

  // Raises the error for what a kernel of the row found wrong while it ran.
  [[noreturn]] virtual void raise_fault() const;

  // Whether the row computes in the type.
  bool has_type(c10::ScalarType type) const;
};

// Makes rows of a kind known under its name. To be called while the library is loaded.
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
  widened,   // of a reduction: integers are added up in int64
};
ComputeRule take_compute_rule(RowFields& fields);

// The type of the result of such a row.
enum class ResultRule {
  compute,
  boolean,
  self,  // that of operand 0
  real,  // of a complex number, that of its parts
};
ResultRule take_result_rule(RowFields& fields);

// Whether a tensor of `type` is for a row, beside a first one of type `first`. The row
// may want `same_type`. What is to be written in another type, but for places and
// answers, is for PyTorch's kernel: some ops convert, and others refuse.
bool takes_type(bool same_type, c10::ScalarType type, c10::ScalarType first,
                bool is_out);

// What every row of the kind that has nothing special is known to cost.
RowPrior prior_of(const RowSpec& spec);
// The same of a row that has to be asked how much work a call is, as of products.
RowPrior prior_of_asked(const RowSpec& spec, double build_us = RowPrior().build_us);

// Makes the rows, binds them to their overloads and announces these with set_row.
// Raises ValueError or TypeError for a row that its kind does not understand, and adds
// none then.
void add_rows(std::vector<RowFields> rows);

}  // namespace xpurt

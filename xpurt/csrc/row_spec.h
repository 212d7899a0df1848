// A row as C++ sees it, and how it is bound to the overloads of its aten op.
#pragma once

#include <c10/core/ScalarType.h>

#include <array>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "row_kernel.h"

namespace xpurt {

// The type in which a pointwise row computes.
enum class ComputeRule {
  common,    // PyTorch's promotion of all operands
  floating,  // the same, and integers become the default floating type
  self,      // the type of operand 0
  source,    // the type of operand 1
  widened,   // of a reduction: integers are added up in int64
};

// The type of a pointwise row's result.
enum class ResultRule {
  compute,
  boolean,
  self,  // that of operand 0
  real,  // of a complex number, that of its parts
};

// When a step is run: without a primitive of oneDNN, or with one.
enum class StepPart { own, before_primitive, after_primitive };

// A kernel of a row of steps. See row_steps.cpp.
struct Step {
  std::string over;                    // the tensor that has an element per place
  std::vector<std::string> along;      // dimensions along which a place is a whole line
  bool lanes = false;                  // a sub-group per place, not a work-item
  bool faults = false;                 // finds wrong indices
  std::array<int64_t, 2> share{1, 1};  // elements per place; the same, in double
  std::vector<std::string> reads;      // tensors
  std::vector<std::string> writes;
  StepPart part = StepPart::own;
};

// Memory for steps to hand on what they computed.
struct Scratch {
  std::string name;
  std::string like;           // the tensor that has its sizes
  bool integral = false;      // int64, not the type of the computation
  std::vector<int64_t> dims;  // if not empty, only these of its sizes
  int copies = 0;             // if not 0, the size of a dimension before those
};

// What a result has that the op's meta function gets wrong.
struct ResultSpec {
  std::vector<std::string> type_of;  // the first of these arguments that is given
  std::string laid_out_like;         // an argument, as the steps see it
  std::string empty_without;         // a bool argument; false: the result is empty
};

struct RowSpec {
  int index = 0;       // position in the table; the name of the row in kernel keys
  std::string kind;    // "pointwise", "reduction", "softmax", "matmul", "steps", ...
  std::string name;    // of the op, without overload and the namespace aten
  std::string dtypes;  // letters of the types it computes in
  ComputeRule compute = ComputeRule::common;
  ResultRule result = ResultRule::compute;
  double flops = 1;  // per element
  CostClass cost_class = 0;
  uint32_t conditions = 0;      // bit k: operand k is a condition, and is not promoted
  uint32_t uses = 0;            // bit k: operand k is read
  int leading = 0;              // operand whose strides the result takes first
  bool raises_on_zero = false;  // native kernels refuse an integral divisor 0
  bool raises_on_negative = false;    // the same of params
  bool same_type = false;             // PyTorch wants tensors of one type
  uint32_t zero_dim = 0;              // bit k: operand k, if a tensor, has no dimension
  bool raises_on_empty = false;       // there is no result for no elements
  std::vector<std::string> params;    // scalar arguments that it knows
  std::vector<std::string> variants;  // values of its str and bool arguments
  std::vector<std::string> ignored;   // arguments without influence on the result
  std::vector<Step> steps;
  std::vector<Scratch> scratch;
  std::string begins_as;                // the argument that the result is a copy of
  std::vector<ResultSpec> results;      // none, or one per result
  std::vector<std::string> contiguous;  // arguments that are made so first
  std::vector<std::string> dense;       // the same, in the memory format of the first
  std::vector<std::string> rows;        // tensors with rows to be computed apart
  std::string like;                     // the argument that the result looks like
  std::vector<std::string> overloads;   // that steps are for; empty: all
  bool draws = false;                   // random numbers
  std::string fault;                    // what a fault is, if not a wrong index
  std::string primitive;                // of oneDNN, where it takes the steps' place
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

// What an argument of an op is.
bool is_tensor(const c10::Argument& argument);                // or None
bool is_tensor_list(const c10::Argument& argument);           // of tensors or None
bool is_optional_tensor_list(const c10::Argument& argument);  // not Tensor[]
bool is_written(const c10::Argument& argument);
bool is_of_no_kernel(const c10::Argument& argument);  // a dtype, a device, ...

// Binds an overload to a row. False if the row has no meaning for it.
bool bind(const RowSpec& spec, const c10::FunctionSchema& schema,
          const std::vector<std::string>& operand_names, Binding* binding);

// Names of the arguments that are tensors in any of the overloads, in order.
std::vector<std::string> operand_names(
    const std::vector<c10::OperatorHandle>& overloads);

// Whether a tensor of `type` is for the row, beside a first one of type `first`. What
// is to be written in another type, but for places and answers, is for PyTorch's
// kernel: some ops convert, and others refuse.
bool takes_type(const RowSpec& spec, c10::ScalarType type, c10::ScalarType first,
                bool is_out);

// What every row of the kind that has nothing special is known to cost.
RowPrior prior_of(const RowSpec& spec);
// The same of a row that has to be asked how much work a call is, as of products.
RowPrior prior_of_asked(const RowSpec& spec, double build_us = RowPrior().build_us);

// Adds rows, binds them to their overloads and announces these with set_row.
void add_rows(std::vector<RowSpec> specs);

// Makers of the kinds of rows; nullptr if the overload has none of the kind.
std::unique_ptr<RowKernel> make_pointwise(const RowSpec& spec, Binding binding);
std::unique_ptr<RowKernel> make_reduction(const RowSpec& spec,
                                          const c10::FunctionSchema& schema);
std::unique_ptr<RowKernel> make_softmax(const RowSpec& spec,
                                        const c10::FunctionSchema& schema);
std::unique_ptr<RowKernel> make_matmul(const RowSpec& spec,
                                       const c10::FunctionSchema& schema);

std::unique_ptr<RowKernel> make_steps(const RowSpec& spec,
                                      const c10::FunctionSchema& schema);
// `overloads`: all of the row's op and of its form in place.
std::unique_ptr<RowKernel> make_decomposed(
    const RowSpec& spec, const c10::OperatorHandle& op,
    const std::vector<c10::OperatorHandle>& overloads);
std::unique_ptr<RowKernel> make_convolution(
    const RowSpec& spec, const c10::OperatorHandle& op,
    const std::vector<c10::OperatorHandle>& overloads);
std::unique_ptr<RowKernel> make_attention(const RowSpec& spec,
                                          const c10::FunctionSchema& schema);
std::unique_ptr<RowKernel> make_recurrent(const RowSpec& spec);

// Defines the op that computes a row's overload by way of others, with the schema of
// that, and gives its name. Called once per overload.
using FormMaker = std::function<c10::OperatorName(int row, const c10::OperatorName&)>;
void set_form_maker(FormMaker maker);

}  // namespace xpurt

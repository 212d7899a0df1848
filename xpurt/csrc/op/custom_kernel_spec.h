// The specification of a custom kernel, and an overload that its steps compute.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

#include <array>
#include <optional>

#include "op/row_spec.h"

namespace xpurt {

// own: the step computes the op itself. before_primitive, after_primitive: the step
// runs beside the row's oneDNN primitive, in a call that uses it.
enum class StepPart { own, before_primitive, after_primitive };

// A step of a custom kernel: one launch. See custom_kernel.cpp.
struct Step {
  explicit Step(RowFields& fields);

  std::string over;  // a tensor with one element per work-item
  std::vector<std::string>
      along;    // dimensions along which a work-item computes a whole line
  bool lanes;   // a sub-group computes a work-item, not a single lane
  bool faults;  // detects wrong indices
  std::array<int64_t, 2> share;    // elements per work-item; the same, in double
  std::vector<std::string> reads;  // tensors
  std::vector<std::string> writes;
  StepPart part;
};

// Memory for intermediate results that later steps read.
struct Scratch {
  explicit Scratch(RowFields& fields);

  std::string name;
  std::string like;  // the tensor that gives the sizes
  bool integral;     // int64, not the type of the computation
  bool of_halves;    // given only if that type is wider than the first tensor's
  std::vector<int64_t> dims;  // if not empty, only these of its sizes
  int64_t copies;             // if not 0, the size of a dimension before those
};

// Properties of a result that the op's meta function gets wrong.
struct ResultSpec {
  explicit ResultSpec(RowFields& fields);

  std::vector<std::string> type_of;  // the first of these arguments that is given
  std::string laid_out_like;         // an argument, after arrange()
  std::string empty_without;         // a bool argument; false: the result is empty
};

struct CustomKernelSpec : RowSpec {
  explicit CustomKernelSpec(RowFields& fields);
  [[noreturn]] void raise_fault() const override;
  // Whether an argument may have this type, by `types`. Indices that are not in there
  // are int32 or int64, and masks in lists of indices bools.
  bool takes(const std::string& argument, c10::ScalarType type) const;

  std::vector<Step> steps;
  std::vector<Scratch> scratch;
  std::string begins_as;                // the result begins as a copy of this argument
  std::string like;                     // the result has this argument's properties
  std::vector<ResultSpec> results;      // none, or one per result
  std::vector<std::string> contiguous;  // arguments that are made contiguous first
  std::vector<std::string> dense;       // the same, in the memory format of the first
  std::vector<std::string> rows;        // tensors whose rows can be computed separately
  bool same_type;                       // PyTorch requires tensors of one type
  std::vector<std::string> alike;       // arguments of the type of the first tensor
  std::vector<std::string> parameters;  // of a normalization: of one type
  bool per_channel;                     // they have as many elements as channels
  std::vector<std::string> counts;      // arguments that are sizes of the input
  RowFields::Strings types;             // "argument=letters": the types of arguments
  bool draws;                           // random numbers
  std::string fault;                    // the cause of a fault, if not a wrong index
  std::string primitive;                // of oneDNN, which can replace the steps
};

// One overload of the row's op: the positions of its arguments by their roles.
struct CustomKernelOverload {
  CustomKernelOverload(const CustomKernelSpec& spec, const Overload& overload);

  const c10::OperatorHandle op;
  const std::optional<c10::OperatorHandle> functional;  // without out=
  const c10::FunctionSchema& schema;
  std::vector<const c10::Argument*> arguments;
  std::vector<int> written;
  std::vector<int> counts;  // the arguments that are sizes of the input
  size_t outs = 0;          // the arguments that are out=, which are the last ones
  int copied = -1;          // the argument that the result begins as a copy of
  int indices = -1;         // the argument that is a list of indices or None
  int like = -1;            // the argument whose properties the result has
  bool has_meta = false;    // see Note [Structured meta functions]

  const c10::IValue& argument(const torch::jit::Stack& stack, size_t at) const {
    return stack[stack.size() - arguments.size() + at];
  }
  // Whether the op changes this argument, and it is not out=. A step may leave elements
  // of it unchanged, so the device must have its contents.
  bool is_changed(const std::string& name) const;
  bool in_place() const { return !written.empty() && !arguments[written[0]]->is_out(); }
};

}  // namespace xpurt

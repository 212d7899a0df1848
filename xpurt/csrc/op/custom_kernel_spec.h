// What a custom kernel is, and one overload that its steps compute.
#pragma once

#include <ATen/core/ivalue.h>

#include <array>

#include "op/row_spec.h"

namespace xpurt {

// When a step is run: without a primitive of oneDNN, or with one.
enum class StepPart { own, before_primitive, after_primitive };

// A step of a custom kernel: one launch. See custom_kernel.cpp.
struct Step {
  explicit Step(RowFields& fields);

  std::string over;  // the tensor that has an element per work-item
  std::vector<std::string>
      along;    // dimensions along which a work-item computes a whole line
  bool lanes;   // a sub-group per work-item, not a single lane
  bool faults;  // finds wrong indices
  std::array<int64_t, 2> share;    // elements per work-item; the same, in double
  std::vector<std::string> reads;  // tensors
  std::vector<std::string> writes;
  StepPart part;
};

// Memory for steps to hand on what they computed.
struct Scratch {
  explicit Scratch(RowFields& fields);

  std::string name;
  std::string like;           // the tensor that has its sizes
  bool integral;              // int64, not the type of the computation
  std::vector<int64_t> dims;  // if not empty, only these of its sizes
  int64_t copies;             // if not 0, the size of a dimension before those
};

// What a result has that the op's meta function gets wrong.
struct ResultSpec {
  explicit ResultSpec(RowFields& fields);

  std::vector<std::string> type_of;  // the first of these arguments that is given
  std::string laid_out_like;         // an argument, as the steps see it
  std::string empty_without;         // a bool argument; false: the result is empty
};

struct CustomKernelSpec : RowSpec {
  explicit CustomKernelSpec(RowFields& fields);
  [[noreturn]] void raise_fault() const override;

  std::vector<Step> steps;
  std::vector<Scratch> scratch;
  std::string begins_as;                // the argument that the result is a copy of
  std::string like;                     // the argument that the result looks like
  std::vector<ResultSpec> results;      // none, or one per result
  std::vector<std::string> contiguous;  // arguments that are made so first
  std::vector<std::string> dense;       // the same, in the memory format of the first
  std::vector<std::string> rows;        // tensors with rows to be computed apart
  bool same_type;                       // PyTorch wants tensors of one type
  bool raises_on_empty;                 // there is no result for no elements
  bool draws;                           // random numbers
  std::string fault;                    // what a fault is, if not a wrong index
  std::string primitive;                // of oneDNN, where it takes the steps' place
};

// One overload of the row's op: where its arguments are, by what they mean.
struct CustomKernelOverload {
  CustomKernelOverload(const CustomKernelSpec& spec, const c10::FunctionSchema& of);

  const c10::FunctionSchema& schema;
  std::vector<const c10::Argument*> arguments;
  std::vector<int> written;
  int copied = -1;   // the argument that the result is a copy of at first
  int indices = -1;  // the argument that is a list of indices or None
  int like = -1;     // the argument that the result looks like

  const c10::IValue& argument(const torch::jit::Stack& stack, size_t at) const {
    return stack[stack.size() - arguments.size() + at];
  }
  // Whether it is an argument that the op changes, and no out=: a step may leave
  // elements of it as they are, so the device has to have them.
  bool is_changed(const std::string& name) const;
  bool in_place() const { return !written.empty() && !arguments[written[0]]->is_out(); }
};

}  // namespace xpurt

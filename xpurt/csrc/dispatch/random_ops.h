// The calls from the random ops of aten to the rows of random numbers.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>

#include <optional>
#include <string>

#include "op/op_record.h"
#include "random/draw.h"

namespace xpurt {

// An op of kernels/rows/random.py, by its name without the namespace. It runs as its
// row's kernel or as its host form, as the policy chooses. It writes to existing
// tensors, and runs on the device of the first one.
class RandomRow {
 public:
  explicit RandomRow(const char* name) : name_(name) {}

  template <typename... Arguments>
  void operator()(Draw draw, const Arguments&... arguments) {
    torch::jit::Stack stack;
    stack.reserve(sizeof...(arguments) + 3);
    torch::jit::push(stack, arguments..., draw.seed, draw.offset, draw.from);
    run(&stack);
  }

  // For a row that draws no random numbers.
  template <typename... Arguments>
  void without_draw(const Arguments&... arguments) {
    torch::jit::Stack stack;
    torch::jit::push(stack, arguments...);
    run(&stack);
  }

 private:
  void run(torch::jit::Stack* stack);

  const char* name_;
  std::atomic<OpRecord*> record_{nullptr};
};

// Raises the error of PyTorch's dispatch of types, before any number is drawn.
inline void check_floating(const at::Tensor& tensor, const char* kernel) {
  TORCH_CHECK_NOT_IMPLEMENTED(at::isFloatingType(tensor.scalar_type()), '"', kernel,
                              "\" not implemented for '", tensor.scalar_type(), "'");
}

}  // namespace xpurt

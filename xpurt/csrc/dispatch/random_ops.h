// How the random ops of aten call the rows of random numbers.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>

#include <optional>
#include <string>

#include "op/op_record.h"
#include "random/draw.h"

namespace xpurt {

// An op of kernels/rows/random.py, by its name without the namespace: run on its row's
// kernel or as its host form, whichever the policy takes. It writes to tensors that are
// there, the first of which says where it runs.
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

  // Of a row that draws nothing.
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

// As PyTorch's dispatch of types says it, before anything is drawn.
inline void check_floating(const at::Tensor& tensor, const char* kernel) {
  TORCH_CHECK_NOT_IMPLEMENTED(at::isFloatingType(tensor.scalar_type()), '"', kernel,
                              "\" not implemented for '", tensor.scalar_type(), "'");
}

}  // namespace xpurt

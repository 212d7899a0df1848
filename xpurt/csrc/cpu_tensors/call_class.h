// A number for calls of an op that cost about the same.
#pragma once

#include <ATen/core/stack.h>

#include <cstdint>

namespace xpurt {

struct OpRecord;

// What a choice needs to know of a call.
struct CallClass {
  int64_t elements = 0;  // of the largest operand
  bool accepted = true;  // all tensors have an xpu form
  // Of calls whose operands agree in dtypes, order of dimensions, and sizes up to a
  // factor of two, and whose other arguments are equal. Never 0.
  uint64_t key = 0;
};

// `with_scalars`: numbers of floating point belong to the class, such as an exponent.
CallClass class_of(const OpRecord& record, const torch::jit::Stack& stack,
                   bool with_scalars);

}  // namespace xpurt

// The meta functions that PyTorch's structured CPU kernels call first.
#pragma once

#include <ATen/core/boxing/KernelFunction.h>
#include <ATen/core/dispatch/Dispatcher.h>

namespace xpurt {

// Note [Structured meta functions]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// A structured op of PyTorch checks its arguments and computes the properties of its
// results in a meta function in C++, which its kernel for each device calls. On the key
// Meta PyTorch's Python package replaces most of these functions by Python code, which
// lacks checks (interpolation of no elements, index_add of another type) and has other
// messages. So the functions in C++ are called by name. They are as strict as the CPU
// kernel, with its messages, and need no Python. A test finds the ops of rows whose
// function is missing from the list.
struct StructuredMeta {
  const char* name;
  const char* overload;
  c10::KernelFunction function;
};

// The function for the overload: its own, or that of the overload that returns new
// tensors and has the same inputs. nullptr if the list has none.
const StructuredMeta* structured_meta(const c10::FunctionSchema& schema);

}  // namespace xpurt

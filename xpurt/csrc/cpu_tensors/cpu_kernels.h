// The rows in the place of PyTorch's kernels for CPU tensors.
#pragma once

#include <ATen/core/operator_name.h>

#include <cstdint>
#include <string>
#include <vector>

namespace xpurt {

// Note [Kernels of CPU tensors]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// A row computes xpu tensors. On an ordinal that is one CPU device, the bytes of a CPU
// tensor are those of an xpu tensor as well, so a row can compute CPU tensors: their
// xpu forms are made without a copy, the row runs on the current stream of the ordinal,
// the host waits for the stream, and the results become CPU tensors.
//
// For this, a kernel is registered on the key CPU of each chosen op. It runs PyTorch's
// kernel, which was found before, if the row does not accept the call, raises an error,
// or is expected to be slower. So errors are those of PyTorch. An op that writes to an
// argument is not repeated if its row may have begun to write.
//
// PyTorch does not write its table of kernels atomically, and a kernel may be taken out
// while another thread runs it. So the kernel has no state: one function serves all
// ops, and finds what it needs by the op. A thread that reads a half written entry
// calls one of the two kernels.
//
// PyTorch's kernels for CPU tensors compute xpu tensors, too: the native tier. They run
// unchanged there, and within a row.
enum class CpuKernels : uint8_t {
  native,     // PyTorch's kernels: nothing is registered
  sycl,       // a row where it accepts the call
  automatic,  // a row where it was measured to be faster: see Note [Paired calls]
};

struct CpuOpEntry {
  std::string name;      // "aten::pow"
  std::string overload;  // "Tensor_Scalar"
  bool with_scalars;     // see class_of()
};

// Registers kernels for these ops, and takes out those for others. Ops without a row or
// without a CPU kernel are left out, as are those that draw random numbers, or that
// compute more if an operand requires a gradient.
void set_cpu_kernels(CpuKernels mode, const std::vector<CpuOpEntry>& ops);
CpuKernels cpu_kernels();

// The ops with a kernel of a row now.
std::vector<std::string> ops_with_cpu_kernels();

}  // namespace xpurt

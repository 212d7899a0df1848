// What PyTorch's report of lazy tensors has of this backend.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <torch/csrc/lazy/core/tensor.h>

#include <chrono>
#include <string>
#include <vector>

namespace xpurt {

// Note [Metrics of lazy graphs]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// torch._lazy.metrics has counters, which Python reads by name, and metrics, which are
// in its report alone. The core counts graphs that it knows (CachedCompile) and those
// that are new (UncachedCompile). This backend adds:
//
//   CompileTime, ExecuteTime             host time of one compilation, of one run
//   TransferToDevice, TransferFromDevice bytes of one copy of the host's
//   xpurt::transfers_to_device, xpurt::bytes_to_device, and the same with `from`
//   xpurt::run_compiled, xpurt::run_op_by_op   runs with compiled code, and without
//   xpurt::run_now                       ops that ran at once, as their sizes depend on
//                                        values
//   xpurt::code_found, xpurt::code_compiled, xpurt::code_refused
//                                        graphs with code of another one's, with code
//                                        of their own, and that can't be compiled
//   xpurt::allocated_bytes:xpu:0         after the last run on the device
//   aten::add.Tensor                     calls of an op in a graph that the CPU
//                                        computed on copies
//
// The report ends with the memory of each device. torch._lazy.metrics.reset() sets all
// but this to 0.

// Of a tensor that is copied from the host.
void count_to_device(const at::Tensor& tensor);
void count_from_device(size_t bytes);

// Whether the value of a lazy tensor is in the host's memory: no graph has read it.
bool is_on_host(torch::lazy::LazyTensor& lazy);

void count_compilation(std::chrono::nanoseconds took, bool refused);
// A graph has the code that was compiled for another one.
void count_found_code();
void count_run(std::chrono::nanoseconds took, bool compiled);

// Ops that run in its scope are those of lazy programs, on this thread.
class LazyOpsRun {
 public:
  // After it, the device's memory is counted.
  explicit LazyOpsRun(c10::Device device);
  ~LazyOpsRun();
  LazyOpsRun(const LazyOpsRun&) = delete;
  LazyOpsRun& operator=(const LazyOpsRun&) = delete;

 private:
  const c10::Device device_;
};

// From now on ops that the CPU computes on copies are counted. Once.
void count_fallbacks();

// The end of the report.
std::string memory_report(const std::vector<c10::Device>& devices);

}  // namespace xpurt

// The record of an op: properties of its schema, its row, and its counts.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "device/device_counts.h"
#include "host/api.h"
#include "op/row_kernel.h"
#include "op/tier.h"

namespace xpurt {

struct DeviceStatistics;
struct Refusals;
struct WiderTypes;

struct OpCount {
  std::atomic<uint64_t> calls{0};
  std::atomic<uint64_t> bytes_copied{0};
  std::atomic<uint64_t> ticks{0};
};
// The column of ops whose operands are CPU tensors, after those of the devices.
constexpr int kCpuTensors = kCountedDevices;
using OpCounts = std::array<std::array<OpCount, kCountedDevices + 1>, kTiers>;

// Runs an op on host tensors: the op's native tier.
using HostKernel = void (*)(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                            torch::jit::Stack* stack);

struct OpRecord {
  explicit OpRecord(const c10::OperatorHandle& op);

  c10::OperatorHandle op;
  std::string name;  // "aten::add.Tensor"
  size_t arguments = 0;
  size_t returns = 0;
  std::vector<bool> written;   // per argument: the op may write to it
  std::vector<bool> anywhere;  // per argument: may be on the CPU, at any size
  std::vector<bool> on_host;   // per return: a CPU tensor on every device
  int generator = -1;          // position of the argument, or -1
  int pin_memory = -1;         // the same
  std::vector<int> devices;    // positions of the arguments that are devices
  // Position of the argument that gives the dimensions of the first tensor along which
  // the op runs, or -1. It may be a bool (of batch_norm): if true, the op runs along
  // all dimensions but the channels.
  int dims = -1;
  bool dims_as_shape = false;  // the argument is the shape of the innermost dimensions
  bool may_resize = false;     // writes to arguments that it may resize: out=
  bool uses_requires_grad = false;  // computes more if an operand requires a gradient
  bool mixes_devices = false;       // checks its operands' devices itself
  bool has_cpu_kernel = false;      // PyTorch's, or a host kernel of xpurt
  bool is_aten_op = false;          // defined by PyTorch, not by another library
  // Its row writes elements of an operand at given indices, in any order. If several
  // elements have the same index, any of them may be written last.
  bool writes_in_any_order = false;
  int accumulate = -1;  // position of the bool with which it adds instead, in any order
  HostKernel host_kernel;
  std::atomic<const RowKernel*> row{nullptr};
  std::atomic<OpCounts*> counts{nullptr};  // made at the first count
  std::atomic<bool> warned{false};         // of copying
  // Measured times and cached choices: see device_statistics.h.
  std::atomic<DeviceStatistics*> device_statistics{nullptr};
  std::atomic<Refusals*> refusals{nullptr};       // of drivers, to build kernels
  std::atomic<const WiderTypes*> wider{nullptr};  // see wider_types.h
};

// Made at the first call; valid for the life of the process.
XPURT_API OpRecord& op_record(const c10::OperatorHandle& op);

// Called when the op is unregistered: its handle may be reused for another op.
void retire_op_record(const c10::OperatorHandle& op);

// Throws NotImplementedError unless a kernel runs the op on the host. `keys`: the
// CPU's.
void check_host_kernel(const OpRecord& record, c10::DeviceIndex index,
                       c10::DispatchKeySet keys);

// Sets the native tier of ops that PyTorch computes by another op on the CPU. These ops
// are registered like those with a CPU kernel.
struct HostKernelEntry {
  const char* name;
  const char* overload;
  HostKernel kernel;
};
XPURT_API bool has_host_kernel(const c10::OperatorHandle& op);
bool set_host_kernels(std::initializer_list<HostKernelEntry> entries);

void for_each_op_record(const std::function<void(OpRecord&)>& visit);

}  // namespace xpurt

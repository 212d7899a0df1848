#include "lazy/metrics.h"

#include <c10/core/CachingDeviceAllocator.h>
#include <torch/csrc/lazy/core/metrics.h>
#include <torch/csrc/lazy/ts_backend/ts_backend_impl.h>

#include <sstream>

#include "lazy/real_devices.h"
#include "op/fallback_mode.h"

namespace xpurt {
namespace {

using torch::lazy::Counter;
using torch::lazy::Metric;
using torch::lazy::MetricFnBytes;
using torch::lazy::MetricFnTime;

thread_local int runs_underway = 0;  // of ops of lazy programs

// Memory of a device; none for one whose allocator has no statistics.
struct Memory {
  int64_t allocated, peak, reserved;  // bytes
};

std::optional<Memory> memory_of(c10::Device device) {
  if (device.is_cpu()) return std::nullopt;
  auto* const allocator =
      dynamic_cast<c10::DeviceAllocator*>(c10::GetAllocator(device.type()));
  if (allocator == nullptr || !allocator->initialized()) return std::nullopt;
  const auto found = allocator->getDeviceStats(device.index());
  return Memory{found.allocated_bytes[0].current, found.allocated_bytes[0].peak,
                found.reserved_bytes[0].current};
}

// Its names are known at run time alone.
void count_memory(c10::Device device) {
  if (const auto memory = memory_of(device)) {
    Counter counter("xpurt::allocated_bytes:" + device.str());
    counter.AddValue(memory->allocated - counter.Value());
  }
}

void count_fallback(const std::string& op) {
  if (runs_underway > 0) Counter(op).AddValue(1);
}

}  // namespace

void count_to_device(const at::Tensor& tensor) {
  static auto* const sizes = new Metric("TransferToDevice", MetricFnBytes);
  sizes->AddSample(static_cast<double>(tensor.nbytes()));
  TORCH_LAZY_COUNTER("xpurt::transfers_to_device", 1);
  TORCH_LAZY_COUNTER("xpurt::bytes_to_device", static_cast<int64_t>(tensor.nbytes()));
}

void count_from_device(size_t bytes) {
  static auto* const sizes = new Metric("TransferFromDevice", MetricFnBytes);
  sizes->AddSample(static_cast<double>(bytes));
  TORCH_LAZY_COUNTER("xpurt::transfers_from_device", 1);
  TORCH_LAZY_COUNTER("xpurt::bytes_from_device", static_cast<int64_t>(bytes));
}

bool is_on_host(torch::lazy::LazyTensor& lazy) {
  if (real_device(lazy.GetDevice()).is_cpu()) return true;
  if (const auto tensor = lazy.CurrentTensorData()) return tensor->is_cpu();
  const auto data = lazy.CurrentDataHandle();
  return data != nullptr && data->HasValue() &&
         static_cast<torch::lazy::TSData&>(*data).data().is_cpu();
}

void count_compilation(std::chrono::nanoseconds took, bool refused) {
  static auto* const times = new Metric("CompileTime", MetricFnTime);
  times->AddSample(static_cast<double>(took.count()));
  if (refused) {
    TORCH_LAZY_COUNTER("xpurt::code_refused", 1);
  } else {
    TORCH_LAZY_COUNTER("xpurt::code_compiled", 1);
  }
}

void count_found_code() {
  TORCH_LAZY_COUNTER("xpurt::code_found", 1);
}

void count_run(std::chrono::nanoseconds took, bool compiled) {
  static auto* const times = new Metric("ExecuteTime", MetricFnTime);
  times->AddSample(static_cast<double>(took.count()));
  if (compiled) {
    TORCH_LAZY_COUNTER("xpurt::run_compiled", 1);
  } else {
    TORCH_LAZY_COUNTER("xpurt::run_op_by_op", 1);
  }
}

LazyOpsRun::LazyOpsRun(c10::Device device) : device_(device) {
  ++runs_underway;
}

LazyOpsRun::~LazyOpsRun() {
  --runs_underway;
  count_memory(device_);
}

void count_fallbacks() {
  set_copy_listener(&count_fallback);
}

std::string memory_report(const std::vector<c10::Device>& devices) {
  std::stringstream report;
  for (const c10::Device device : devices) {
    const auto memory = memory_of(device);
    if (!memory) continue;
    report << "Memory: " << device.str() << '\n'
           << "  Allocated: " << MetricFnBytes(static_cast<double>(memory->allocated))
           << "\n  Peak: " << MetricFnBytes(static_cast<double>(memory->peak))
           << "\n  Reserved: " << MetricFnBytes(static_cast<double>(memory->reserved))
           << '\n';
  }
  return report.str();
}

}  // namespace xpurt

#include "policy.h"

#include <algorithm>
#include <array>

#include "row_kernel.h"
#include "scheduler.h"

namespace xpurt {
namespace {

// A native kernel is taken below this many elements where a CPU is the only device:
// submitting a kernel and waiting for it costs about 10 microseconds more than
// calling one. Placeholders, measured once on a 2-core machine, for costs that are
// learned.
struct Crossover {
  int64_t cheap;  // few operations per element: the memory decides
  int64_t dear;   // transcendental functions and the like
};
constexpr double kDearFlops = 8;
constexpr std::array<Crossover, 7> kCrossover = {{
    {1 << 16, 1 << 14},      // pointwise
    {1 << 17, 1 << 16},      // reduction
    {1 << 16, 1 << 14},      // softmax
    {1 << 25, 1 << 25},      // matmul: pairs of a product and a sum
    {INT64_MAX, INT64_MAX},  // steps: not measured yet
    {1 << 22, 1 << 22},      // convolution: multiply-adds
    // attention: 1.2 to 2 times the CPU time of the native kernel (4 times, of
    // bfloat16)
    {INT64_MAX, INT64_MAX},
}};

}  // namespace

void OpCost::add(const at::TensorBase& tensor) {
  bytes += static_cast<int64_t>(tensor.nbytes());
  needs_fp64 = needs_fp64 || tensor.scalar_type() == c10::ScalarType::Double;
}

void OpCost::read(const at::TensorBase& tensor) {
  add(tensor);
  reads.push_back(tensor.storage().unsafeGetStorageImpl());
}

void OpCost::write(const at::TensorBase& tensor) {
  add(tensor);
  writes.push_back(tensor.storage().unsafeGetStorageImpl());
}

bool can_run(const Ordinal& ordinal, const OpCost& cost) {
  // Home is where an op runs that may not leave it.
  if (!ordinal.home_device().is_opencl) return false;
  const auto& devices = ordinal.devices;
  return !cost.needs_fp64 ||
         std::any_of(devices.begin(), devices.end(),
                     [](const auto* d) { return d->is_opencl && d->has_fp64; });
}

size_t choose_device(const OpCost& cost, Stream& stream) {
  const Ordinal& ordinal = stream.ordinal();
  if (ordinal.devices.size() == 1) return 0;
  Work work;
  work.flops = cost.flops * static_cast<double>(cost.elements);
  work.bytes = static_cast<double>(cost.bytes);
  work.needs_fp64 = cost.needs_fp64;
  work.reads = cost.reads;
  work.writes = cost.writes;
  const size_t position = choose_position(work, stream);
  note_device(ordinal.devices[position]->id);
  return position;
}

bool kernel_wins(Stream& stream, const OpCost& cost) {
  const Ordinal& ordinal = stream.ordinal();
  const PhysicalDevice& home = ordinal.home_device();
  if (!home.is_cpu || !home.host_accessible) return true;
  if (choose_device(cost, stream) != ordinal.home) return true;
  return cost.elements >= crossover(cost.op_class, cost.flops);
}

int64_t crossover(OpClass op_class, double flops) {
  const Crossover& at = kCrossover[static_cast<size_t>(op_class)];
  return flops < kDearFlops ? at.cheap : at.dear;
}

}  // namespace xpurt

#include "lazy/real_devices.h"

#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/csrc/lazy/backend/backend_interface.h>
#include <torch/csrc/lazy/core/lazy_graph_executor.h>

#include <algorithm>
#include <atomic>
#include <sstream>

#include "device/device.h"
#include "lazy/metrics.h"
#include "lazy/one_thread.h"
#include "stream/stream.h"

namespace xpurt {
namespace {

using c10::DeviceType;
using torch::lazy::BackendDevice;

std::atomic<DeviceType> type_in_use{DeviceType::XPU};

// Those that a prototype device may have. Each has a guard once it is made.
constexpr DeviceType kPrototypes[] = {DeviceType::IPU,  DeviceType::HPU,
                                      DeviceType::MTIA, DeviceType::MAIA,
                                      DeviceType::XLA,  DeviceType::PrivateUse1};

std::string name_of(DeviceType type) {
  return c10::DeviceTypeName(type, /*lower_case=*/true);
}

// xpu's guard tells autograd of more: see Note [Autograd's threads].
int64_t count_of(DeviceType type) {
  if (type == DeviceType::XPU) return device_count();
  if (type == DeviceType::CPU) return 1;
  return c10::impl::VirtualGuardImpl(type).deviceCount();
}

void check_there(DeviceType type, int64_t ordinal) {
  const int64_t count = count_of(type);
  TORCH_CHECK_INDEX(ordinal >= 0 && ordinal < count, "lazy:", ordinal,
                    " stands for the device ", ordinal, " of the type \"",
                    name_of(type), "\", which has ", count,
                    ". Take an index below that.");
}

std::string list_of_types() {
  std::ostringstream found;
  for (const DeviceType each : real_device_types())
    found << (found.tellp() > 0 ? ", \"" : "\"") << name_of(each) << '"';
  return found.str();
}

// What keeps the type from changing; empty: nothing.
std::string live_tensors() {
  constexpr size_t kShown = 3;
  const auto alive = torch::lazy::LazyGraphExecutor::Get()->GetLiveTensors(nullptr);
  if (alive.empty()) return {};
  std::ostringstream found;
  found << alive.size() << (alive.size() == 1 ? " is" : " are") << " alive (";
  for (size_t at = 0; at < std::min(kShown, alive.size()); ++at)
    found << (at == 0 ? "" : ", ") << alive[at]->shape().Get().to_string();
  found << (alive.size() > kShown ? ", ...)" : ")");
  return found.str();
}

}  // namespace

DeviceType lazy_device_type() noexcept {
  return type_in_use.load(std::memory_order_relaxed);
}

std::vector<DeviceType> real_device_types() {
  std::vector<DeviceType> found{DeviceType::XPU, DeviceType::CPU};
  for (const DeviceType each : kPrototypes) {
    if (c10::impl::hasDeviceGuardImpl(each) && count_of(each) > 0)
      found.push_back(each);
  }
  return found;
}

void set_lazy_device_type(DeviceType type) {
  const auto types = real_device_types();
  TORCH_CHECK_VALUE(std::ranges::find(types, type) != types.end(),
                    "lazy tensors can be on ", list_of_types(), "; \"", name_of(type),
                    "\" was asked for. xpurt.prototype_device() makes a device of "
                    "another type.");
  with_lazy_core([&] {
    if (type == lazy_device_type()) return;
    const std::string alive = live_tensors();
    TORCH_CHECK(alive.empty(), "lazy tensors are to be on \"", name_of(type),
                "\", and ", alive, " on \"", name_of(lazy_device_type()),
                "\". Delete them, and models and optimizers of them, or move them with "
                ".cpu(), and try again.");
    type_in_use = type;
  });
}

c10::Device real_device(const BackendDevice& device) {
  const auto type = static_cast<DeviceType>(device.type());
  if (device.ordinal() != 0) check_there(type, device.ordinal());
  if (type == DeviceType::CPU) return type;
  return {type, static_cast<c10::DeviceIndex>(device.ordinal())};
}

BackendDevice backend_device(c10::Device real) {
  const DeviceType type = real.type();
  int64_t ordinal = real.index();
  if (type == DeviceType::CPU) {
    ordinal = 0;
  } else if (!real.has_index()) {
    ordinal = type == DeviceType::XPU
                  ? current_device()
                  : c10::impl::VirtualGuardImpl(type).getDevice().index();
  }
  check_there(type, ordinal);
  return {std::make_shared<RealType>(type), ordinal};
}

c10::Device real_device(c10::Device lazy) {
  const DeviceType type = lazy_device_type();
  if (type == DeviceType::CPU) return real_device(backend_device(type));
  return {type, lazy.index()};
}

std::vector<BackendDevice> backend_devices() {
  std::vector<BackendDevice> found;
  for (const DeviceType type : real_device_types()) {
    for (int64_t ordinal = 0; ordinal < count_of(type); ++ordinal)
      found.push_back({std::make_shared<RealType>(type), ordinal});
  }
  return found;
}

c10::DeviceIndex current_ordinal() {
  const DeviceType type = lazy_device_type();
  if (type == DeviceType::XPU) return current_device();
  if (type == DeviceType::CPU) return 0;
  return c10::impl::VirtualGuardImpl(type).getDevice().index();
}

void set_current_ordinal(c10::DeviceIndex ordinal) {
  const DeviceType type = lazy_device_type();
  if (type == DeviceType::XPU) {
    exchange_device(ordinal);
  } else {
    check_there(type, ordinal);
    if (type != DeviceType::CPU)
      c10::impl::VirtualGuardImpl(type).setDevice({type, ordinal});
  }
}

void synchronize_current_stream(c10::Device real) {
  if (real.is_cpu()) return;
  if (real.is_xpu()) return current_stream(real.index()).wait();
  const c10::impl::VirtualGuardImpl guard(real.type());
  guard.synchronizeStream(guard.getStream(real));
}

at::Tensor moved_to(const at::Tensor& tensor, c10::Device real) {
  if (tensor.is_cpu() && !real.is_cpu()) count_to_device(tensor);
  return tensor.to(real);
}

}  // namespace xpurt

#include "schedule/scheduler.h"

#include <ATen/ThreadLocalPythonObjects.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <utility>

#include "host/mutex.h"

namespace xpurt {
namespace {

struct OrdinalCosts {
  uint64_t epoch = 0;
  std::vector<DeviceCost> by_position;
  bool with_curves = false;
};

SharedMutex costs_mutex{Rank::device_costs};
std::array<OrdinalCosts, kMaxDevices> costs_by_ordinal;
std::atomic<uint64_t> cost_changes{0};

// Note [Preferences]
// ~~~~~~~~~~~~~~~~~~
// A preference holds for the backward pass, too, which runs in a thread of autograd. So
// it is kept in ThreadLocalPythonObjects, which PyTorch passes on to such threads. The
// preference is encoded in the key alone, which can be checked without Python.
constexpr std::array<const char*, 3> kPreferences{"cpu", "gpu", "accelerator"};
// Number of preferences set now, in all threads. Checking the keys costs as much as a
// tenth of a small op, so they are checked only while this is not 0.
std::atomic<int> preferences_set{0};

std::string key_of(const std::string& kind) {
  return "xpurt:" + kind;
}

}  // namespace

void set_device_costs(c10::DeviceIndex index, std::vector<DeviceCost> costs) {
  const size_t devices = ordinal(index).devices.size();
  TORCH_CHECK_VALUE(costs.size() == devices, "xpu:", static_cast<int>(index), " has ",
                    devices, " devices, but costs of ", costs.size(), " were given");
  for (const DeviceCost& cost : costs) {
    TORCH_CHECK_VALUE(cost.launch_us >= 0 && cost.copy_launch_us >= 0 &&
                          cost.bytes_per_us > 0 && cost.flops_per_us > 0 &&
                          cost.copy_bytes_per_us > 0,
                      "times of a cost are not negative, and rates are positive");
  }
  {
    std::unique_lock<SharedMutex> lock(costs_mutex);
    costs_by_ordinal[index] = {placement_epoch(), std::move(costs), false};
  }
  ++cost_changes;
}

std::vector<DeviceCost> device_costs(c10::DeviceIndex index) {
  std::shared_lock<SharedMutex> lock(costs_mutex);
  const OrdinalCosts& found = costs_by_ordinal[index];
  if (found.epoch != placement_epoch()) return {};
  return found.by_position;
}

uint64_t device_costs_version() noexcept {
  return cost_changes.load(std::memory_order_acquire);
}

void use_cost_curves(c10::DeviceIndex index) {
  {
    std::unique_lock<SharedMutex> lock(costs_mutex);
    costs_by_ordinal.at(index).with_curves = true;
  }
  ++cost_changes;
}

bool uses_cost_curves(c10::DeviceIndex index) {
  std::shared_lock<SharedMutex> lock(costs_mutex);
  return costs_by_ordinal[index].with_curves;
}

std::string preference() {
  if (C10_LIKELY(preferences_set.load(std::memory_order_relaxed) == 0)) return {};
  for (const char* kind : kPreferences) {
    if (at::impl::ThreadLocalPythonObjects::contains(key_of(kind))) return kind;
  }
  return {};
}

bool has_preference() noexcept {
  return !preference().empty();
}

std::string preference(const Ordinal& devices) {
  std::string kind = preference();
  if (kind.empty() && devices.overflows) kind = devices.working_device().kind();
  return kind;
}

bool has_preference(const Ordinal& devices) noexcept {
  return devices.overflows || has_preference();
}

std::string set_preference(const std::string& kind) {
  const bool known = std::ranges::find(kPreferences, kind) != kPreferences.end();
  TORCH_CHECK_VALUE(kind.empty() || known,
                    "a preference is \"cpu\", \"gpu\" or \"accelerator\"; found \"",
                    kind, "\"");
  const std::string before = preference();
  using at::impl::ThreadLocalPythonObjects;
  if (!before.empty()) ThreadLocalPythonObjects::erase(key_of(before));
  if (!kind.empty()) ThreadLocalPythonObjects::set(key_of(kind), nullptr);
  preferences_set +=
      static_cast<int>(!kind.empty()) - static_cast<int>(!before.empty());
  return before;
}

int preferences_held() noexcept {
  return preferences_set.load(std::memory_order_relaxed);
}

}  // namespace xpurt

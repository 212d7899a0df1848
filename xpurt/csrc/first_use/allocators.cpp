// The allocators of xpu before its first use. See Note [First use].
#include <ATen/core/CachingHostAllocator.h>
#include <c10/core/CachingDeviceAllocator.h>

#include <functional>
#include <utility>

#include "first_use/first_use.h"
#include "host/torch_version.h"

namespace xpurt {
namespace {

using c10::DeviceIndex;
using c10::DeviceType;

c10::DeviceAllocator& loaded_device() {
  XPURT_CHECK_LOADED(load());
  return *c10::getDeviceAllocator(DeviceType::XPU);
}

at::HostAllocator& loaded_host() {
  XPURT_CHECK_LOADED(load());
  return *at::getHostAllocator(DeviceType::XPU);
}

struct FirstUseDeviceAllocator final : c10::DeviceAllocator {
  bool initialized() override { return false; }
  c10::DataPtr allocate(size_t size) override { return loaded_device().allocate(size); }
  c10::DeleterFnPtr raw_deleter() const override {
    return loaded_device().raw_deleter();
  }
  void copy_data(void* to, const void* from, size_t size) const override {
    loaded_device().copy_data(to, from, size);
  }
  void emptyCache(c10::MempoolId_t pool) override { loaded_device().emptyCache(pool); }
  void recordStream(const c10::DataPtr& data, c10::Stream stream) override {
    loaded_device().recordStream(data, stream);
  }
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(DeviceIndex index) override {
    return loaded_device().getDeviceStats(index);
  }
  void resetAccumulatedStats(DeviceIndex index) override {
    loaded_device().resetAccumulatedStats(index);
  }
  void resetPeakStats(DeviceIndex index) override {
    loaded_device().resetPeakStats(index);
  }
  std::pair<size_t, size_t> getMemoryInfo(DeviceIndex index) override {
    return loaded_device().getMemoryInfo(index);
  }
};

struct FirstUseHostAllocator final : at::HostAllocator {
  c10::DataPtr allocate(size_t size) override { return loaded_host().allocate(size); }
  void copy_data(void* to, const void* from, size_t size) const override {
    loaded_host().copy_data(to, from, size);
  }
  bool record_event(void* data, void* context, c10::Stream stream) override {
    return loaded_host().record_event(data, context, stream);
  }
  void empty_cache() override { loaded_host().empty_cache(); }
  at::HostStats get_stats() override { return loaded_host().get_stats(); }
  void reset_accumulated_stats() override { loaded_host().reset_accumulated_stats(); }
  void reset_peak_stats() override { loaded_host().reset_peak_stats(); }
  void begin_allocate_to_pool(c10::MempoolId_t pool,
                              std::function<bool(c10::Stream)> filter) override {
    loaded_host().begin_allocate_to_pool(pool, std::move(filter));
  }
  void end_allocate_to_pool(c10::MempoolId_t pool) override {
    loaded_host().end_allocate_to_pool(pool);
  }
  void release_pool(c10::MempoolId_t pool) override {
    loaded_host().release_pool(pool);
  }
#if XPURT_TORCH_AT_LEAST(2, 14)
  void record_history(bool enabled,
                      c10::CachingDeviceAllocator::CreateContextFn context,
                      size_t max_entries,
                      c10::CachingDeviceAllocator::RecordContext when,
                      bool clear) override {
    loaded_host().record_history(enabled, std::move(context), max_entries, when, clear);
  }
#endif
};

}  // namespace

void install_allocators() {
  c10::SetAllocator(DeviceType::XPU, new FirstUseDeviceAllocator);
  at::setHostAllocator(DeviceType::XPU, new FirstUseHostAllocator);
}

}  // namespace xpurt

#include "dispatch/unboxed/unboxed_run.h"

#include "device/device.h"
#include "dispatch/dispatch.h"
#include "memory/replica/replica.h"

namespace xpurt {

bool UnboxedOperands::goes_native(const OpRecord& record) {
  const Ordinal& on = xpurt::ordinal(index_);
  ordinal_ = &on;
  if (C10_LIKELY(on.devices.size() == 1) ||
      record.row.load(std::memory_order_acquire) == nullptr) {
    call_.quick = quick_choice(record, on, index_, call_.signature);
    if (!call_.quick || call_.quick->tier != QuickTier::native) return false;
    call_.quick->take();
    return true;
  }
  if (storage_count_ > kMaxStorages) return false;
  const auto is_at_home = [&](const c10::StorageImpl* storage) {
    return storage == nullptr || is_valid_on(*storage, on.home);
  };
  const bool at_home =
      std::all_of(storages_.begin(), storages_.begin() + storage_count_, is_at_home);
  const auto native =
      at_home ? goes_native_at_home(record, index_, call_.signature) : false;
  if (native.has_value()) call_.quick.emplace();
  return native.value_or(false);
}

void UnboxedOperands::run_boxed(OpRecord& record, c10::DispatchKeySet keys,
                                torch::jit::Stack* stack) const {
  if (is_plain()) {
    run_inspected(record, index_, call_, keys, stack);
  } else {
    run_op(record, keys, stack);
  }
}

std::vector<std::string>& unboxed_ops() {
  static auto* const leaked = new std::vector<std::string>;
  return *leaked;
}

std::vector<std::string>& direct_ops() {
  static auto* const leaked = new std::vector<std::string>;
  return *leaked;
}

}  // namespace xpurt

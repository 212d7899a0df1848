#include "hot_run.h"

#include "device.h"
#include "replica.h"
#include "row_choice.h"

namespace xpurt {

bool HotOperands::goes_native(const OpRecord& record) const {
  const Ordinal& on = ordinal(index_);
  if (C10_LIKELY(on.devices.size() == 1) ||
      record.row.load(std::memory_order_acquire) == nullptr) {
    return xpurt::goes_native(record, index_, look_);
  }
  if (seen_ > kSeen) return false;
  for (size_t i = 0; i < seen_; ++i) {
    if (storages_[i] != nullptr && !is_valid_on(*storages_[i], on.home)) return false;
  }
  return goes_native_at_home(record, index_, look_);
}

void HotRun::done() const {
  count_op(record_, Tier::native, ordinal(index_).home_device().id,
           ticks_now() - begin_, 0);
}

std::vector<std::string>& hot_ops() {
  static auto* const leaked = new std::vector<std::string>;
  return *leaked;
}

}  // namespace xpurt

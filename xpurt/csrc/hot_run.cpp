#include "hot_run.h"

#include "device.h"
#include "row_choice.h"

namespace xpurt {

bool HotOperands::goes_native(const OpRecord& record) const {
  return xpurt::goes_native(record, index_, look_);
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

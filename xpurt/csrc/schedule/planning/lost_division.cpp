#include "schedule/planning/lost_division.h"

namespace xpurt {

Division divide_again(const std::vector<DevicePart>& by_shards,
                      const std::vector<DevicePart>& by_whole_calls, size_t devices,
                      double us, double calls, LostDivision* lost) {
  Division found = divide(by_whole_calls, devices);
  if (!pays(found, by_whole_calls, us)) return {};
  found.end_us =
      end_of(by_shards, found.proportions) + sums_of(by_shards, found.proportions);
  return lost->is_due(us, found.end_us, calls) ? found : Division{};
}

}  // namespace xpurt

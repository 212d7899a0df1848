// In which proportions devices share one large op.
#include <algorithm>
#include <numeric>

#include "candidates.h"
#include "placing.h"
#include "tier_choice.h"

namespace xpurt {
namespace {

// Note [Shares]
// ~~~~~~~~~~~~~
// A device that takes the share x of an op is done at begin + x * whole: `begin` is
// when its queue is free and a kernel launched, `whole` what all of it would take
// there, with the copies of its operands and of its results. All end at the same time t
// if sum((t - begin) / whole) = 1; a device that begins after t takes no part. That is
// the split of EngineCL's HGuided without its rounds: the speeds are learned from one
// call to the next, and each piece that was timed corrects them (Nozal, Bosque and
// Beivide, 2020).
struct Part {
  size_t position;
  double begin_us;
  double whole_us;
};

constexpr double kLeastGain = 0.9;  // of the best device's time
constexpr double kLeastShare = 1 / 64.0;

double end_of(const std::vector<Part>& parts) {
  double slopes = 0, begins = 0;
  for (const Part& each : parts) {
    slopes += 1 / each.whole_us;
    begins += each.begin_us / each.whole_us;
  }
  return (1 + begins) / slopes;
}

double alone_us(const Part& part) {
  return part.begin_us + part.whole_us;
}

// Bytes of operands that a piece on the device needs and has not, and of results that
// come home.
double moved_bytes(const Work& work, const Ordinal& devices, size_t position) {
  double missing = 0, read = 0;
  for (const c10::StorageImpl* storage : work.reads) {
    read += static_cast<double>(storage->nbytes());
    missing += static_cast<double>(bytes_missing_on(*storage, position));
  }
  if (position == devices.home) return missing;
  return missing + std::max(work.bytes - read, 0.0);
}

std::vector<Part> parts_of(const Work& work, const Ordinal& devices,
                           const std::vector<DeviceCost>& costs,
                           const Placing* placing) {
  std::vector<Part> parts;
  const uint64_t positions = positions_for(work, devices);
  for (size_t position = 0; position < devices.devices.size(); ++position) {
    if ((positions >> position & 1) == 0) continue;
    const DeviceCost& cost = costs[position];
    double us = roofline_us(work, cost), begin = cost.launch_us;
    if (placing != nullptr && position < placing->candidates.size()) {
      const Candidate& known = placing->candidates[position];
      if (known.is_possible()) us = known.cost_us;
      begin += known.free_us - placing->now_us;
    }
    const size_t link = position != devices.home ? position : 1 - devices.home % 2;
    const double rate = costs[std::min(link, costs.size() - 1)].copy_bytes_per_us;
    const double moves = moved_bytes(work, devices, position) / rate;
    parts.push_back({position, begin, std::max(us - cost.launch_us, us / 10) + moves});
  }
  return parts;
}

}  // namespace

std::vector<double> shares_of(const Work& work, Stream& stream) {
  const Ordinal& devices = stream.ordinal();
  if (devices.devices.size() == 1 || stays_home(work)) return {};
  const auto costs = device_costs(stream.id().device_index());
  if (costs.empty()) return {};
  std::vector<Part> parts = parts_of(work, devices, costs, current_placing());
  if (parts.size() < 2) return {};
  double alone = alone_us(parts[0]);
  for (const Part& each : parts) alone = std::min(alone, alone_us(each));
  // The one that begins last goes, until each has a share that is worth a launch.
  double end = end_of(parts);
  for (;;) {
    const auto least = std::ranges::min_element(parts, {}, [&](const Part& each) {
      return (end - each.begin_us) / each.whole_us;
    });
    if ((end - least->begin_us) / least->whole_us >= kLeastShare) break;
    parts.erase(least);
    if (parts.size() < 2) return {};
    end = end_of(parts);
  }
  if (end > kLeastGain * alone) return {};
  std::vector<double> shares(devices.devices.size(), 0.0);
  for (const Part& each : parts) {
    shares[each.position] = (end - each.begin_us) / each.whole_us;
  }
  return shares;
}

}  // namespace xpurt

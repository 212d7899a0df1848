#include "schedule/planning/boundary.h"

#include <algorithm>
#include <cmath>

namespace xpurt {
namespace {

constexpr double kFade = 1 - 1 / 16.0;  // of the sums, with each op
constexpr double kDrift = 0.03;         // two devices' boundary moves for a larger gain
constexpr double kMuchLonger = 1.1;     // than an op divided by itself

// Of n devices whose times waver, the last one is late by about sqrt(log(n)) standard
// deviations. With the limit of two devices, noise alone moved the boundaries of 64,
// and each move copies rows of most of them: an efficiency of 0.72 in place of 0.89.
double drift_of(size_t devices) {
  return kDrift * std::sqrt(std::log2(static_cast<double>(devices)));
}

}  // namespace

const std::vector<double>& Boundary::take(const std::vector<DevicePart>& parts,
                                          const Division& division) {
  const size_t devices = division.proportions.size();
  std::vector<bool> takes_part(devices);
  for (size_t p = 0; p < devices; ++p) takes_part[p] = division.proportions[p] > 0;
  const bool is_same = devices_ == takes_part;
  if (!is_same) {
    devices_ = takes_part;
    launch_us_.assign(devices, 0.0);
    whole_us_.assign(devices, 0.0);
  }
  std::vector<DevicePart> chain;
  for (const DevicePart& each : parts) {
    const size_t p = each.position;
    if (!takes_part[p]) continue;
    launch_us_[p] = launch_us_[p] * kFade + each.launch_us;
    whole_us_[p] = whole_us_[p] * kFade + each.whole_us;
    chain.push_back(
        {.position = p, .launch_us = launch_us_[p], .whole_us = whole_us_[p]});
  }
  Division best = divide(chain, devices);
  if (!best.divides()) {
    *this = {};
  } else if (!is_same ||
             end_of(chain, taken_) > (1 + drift_of(chain.size())) * best.end_us) {
    taken_ = std::move(best.proportions);
  }
  return taken_;
}

Division Boundary::kept(const std::vector<DevicePart>& parts, size_t devices) const {
  if (taken_.size() != devices) return {};
  std::vector<bool> has_part(devices);
  for (const DevicePart& each : parts) has_part[each.position] = true;
  for (size_t p = 0; p < devices; ++p) {
    if (taken_[p] > 0 && !has_part[p]) return {};
  }
  return {taken_, end_of(parts, taken_) + sums_of(parts, taken_)};
}

Division divide_call(const std::vector<DevicePart>& parts, size_t devices,
                     double alone_us, bool in_shards, double calls, CopyRegret* regret,
                     Boundary* boundary) {
  Division found = in_shards ? boundary->kept(parts, devices) : Division{};
  if (!found.divides() || found.end_us > alone_us) {
    found = divide_if_it_pays(parts, devices, alone_us, calls, regret);
  }
  if (!found.divides()) return {};
  const bool has_new = std::ranges::any_of(parts, [&](const DevicePart& each) {
    return each.is_new && found.proportions[each.position] > 0;
  });
  // The shards of a new device are limited: they show nothing about the chain.
  if (has_new) return found;
  Division taken{boundary->take(parts, found)};
  if (!taken.divides()) return taken;
  taken.end_us = end_of(parts, taken.proportions) + sums_of(parts, taken.proportions);
  const double first = std::ranges::min(parts, {}, &DevicePart::queue_us).queue_us;
  if (!in_shards && taken.end_us - first > kMuchLonger * (found.end_us - first)) {
    boundary->follow(found.proportions);
    return found;
  }
  return taken;
}

}  // namespace xpurt

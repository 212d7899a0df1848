#include "schedule/planning/division.h"

#include <algorithm>
#include <functional>
#include <iterator>

namespace xpurt {
namespace {

constexpr double kMinProportion = 1 / 64.0;
constexpr double kFirstShard = 1 / 32.0;

double common_end(const std::vector<DevicePart>& parts) {
  double slopes = 0, begins = 0;
  for (const DevicePart& each : parts) {
    slopes += 1 / each.whole_us;
    begins += each.begin_us() / each.whole_us;
  }
  return (1 + begins) / slopes;
}

}  // namespace

Division divide(std::vector<DevicePart> parts, size_t devices) {
  // The device with the least proportion is removed until each has one that is worth a
  // launch.
  while (parts.size() >= 2) {
    const double end = common_end(parts);
    const auto proportion = [&](const DevicePart& each) {
      return (end - each.begin_us()) / each.whole_us;
    };
    const auto least = std::ranges::min_element(parts, {}, proportion);
    if (proportion(*least) < kMinProportion) {
      parts.erase(least);
      continue;
    }
    Division found{std::vector<double>(devices, 0.0), end};
    for (const DevicePart& each : parts) {
      found.proportions[each.position] = proportion(each);
    }
    return found;
  }
  return {};
}

double end_of(const std::vector<DevicePart>& parts,
              const std::vector<double>& proportions) {
  double end = 0;
  for (const DevicePart& each : parts) {
    const double proportion = proportions[each.position];
    if (proportion <= 0) continue;
    end = std::max(end, each.begin_us() + proportion * each.whole_us);
  }
  return end;
}

bool pays(const Division& division, const std::vector<DevicePart>& parts,
          double alone_us) {
  if (!division.divides()) return false;
  const double first = std::ranges::min(parts, {}, &DevicePart::queue_us).queue_us;
  return division.end_us - first <= kMaxDividedTime * (alone_us - first);
}

std::vector<DevicePart> without_copies(std::vector<DevicePart> parts) {
  for (DevicePart& each : parts) each.copies_us = 0;
  return parts;
}

double copies_of(const Division& division, const std::vector<DevicePart>& parts) {
  double us = 0;
  for (const DevicePart& each : parts) {
    if (division.proportions[each.position] > 0) us += each.copies_us;
  }
  return us;
}

Division divide_if_it_pays(const std::vector<DevicePart>& parts, size_t devices,
                           double alone_us, double calls, CopyRegret* regret) {
  Division found = divide(parts, devices);
  if (pays(found, parts, alone_us)) {
    if (copies_of(found, parts) == 0) regret->pay_off();
    return found;
  }
  const std::vector<DevicePart> settled = without_copies(parts);
  found = divide(settled, devices);
  const bool is_due =
      pays(found, settled, alone_us) &&
      regret->add(alone_us - found.end_us, copies_of(found, parts), calls);
  return is_due ? found : Division{};
}

std::vector<DevicePart> known_parts(const std::vector<DevicePart>& parts) {
  std::vector<DevicePart> known;
  std::ranges::copy_if(parts, std::back_inserter(known),
                       std::not_fn(&DevicePart::is_new));
  return known;
}

void limit_new_parts(const std::vector<DevicePart>& parts,
                     std::vector<double>* proportions) {
  double taken = 0, rest = 0;
  for (const DevicePart& each : parts) {
    double& proportion = (*proportions)[each.position];
    if (!each.is_new) {
      rest += proportion;
    } else if (proportion > kFirstShard) {
      taken += proportion - kFirstShard;
      proportion = kFirstShard;
    }
  }
  for (const DevicePart& each : parts) {
    double& proportion = (*proportions)[each.position];
    if (!each.is_new && rest > 0) proportion += taken * proportion / rest;
  }
}

}  // namespace xpurt

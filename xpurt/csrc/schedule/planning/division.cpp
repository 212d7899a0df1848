#include "schedule/planning/division.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>

namespace xpurt {
namespace {

// The least proportion of a device, if there are two. Of many devices, equal ones too
// have small proportions.
constexpr double kMinProportionOfTwo = 1 / 64.0;
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
  const double least_worth = kMinProportionOfTwo * 2 / static_cast<double>(devices);
  const bool has_sums = std::ranges::any_of(
      parts, [](const DevicePart& each) { return each.sum_us > 0; });
  Division best;
  // The device with the least proportion is removed until each has one that is worth a
  // launch; with partial sums, until two devices are left.
  while (parts.size() >= 2) {
    const double end = common_end(parts);
    const auto proportion = [&](const DevicePart& each) {
      return (end - each.begin_us()) / each.whole_us;
    };
    const auto least = std::ranges::min_element(parts, {}, proportion);
    const double work_us = proportion(*least) * least->whole_us;
    if (proportion(*least) < least_worth || work_us < least->launch_us) {
      parts.erase(least);
      continue;
    }
    Division found{std::vector<double>(devices, 0.0), end};
    for (const DevicePart& each : parts) {
      found.proportions[each.position] = proportion(each);
    }
    found.end_us += sums_of(parts, found.proportions);
    if (!best.divides() || found.end_us < best.end_us) best = std::move(found);
    if (!has_sums) break;
    parts.erase(least);
  }
  return best;
}

std::vector<int64_t> units_for(const std::vector<double>& proportions, int64_t units) {
  std::vector<int64_t> found;
  int64_t left = units;
  for (const double proportion : proportions) {
    const double exact = proportion * static_cast<double>(units);
    // A proportion that is whole but for a rounding error is not rounded down.
    const auto whole = static_cast<int64_t>(std::floor(exact * (1 + 1e-12)));
    found.push_back(std::min(whole, left));
    left -= found.back();
  }
  for (; left > 0; --left) {
    size_t next = 0;
    double earliest = HUGE_VAL;
    for (size_t p = 0; p < proportions.size(); ++p) {
      if (proportions[p] <= 0) continue;
      const double end = static_cast<double>(found[p] + 1) / proportions[p];
      if (end < earliest) {
        earliest = end;
        next = p;
      }
    }
    ++found[next];
  }
  return found;
}

double whole_us_of(double shard_us, double setup_us, double proportion) {
  return std::max(shard_us - setup_us, shard_us / 10) / proportion;
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

double sums_of(const std::vector<DevicePart>& parts,
               const std::vector<double>& proportions) {
  double all = 0, longest = 0;
  for (const DevicePart& each : parts) {
    if (proportions[each.position] <= 0) continue;
    all += each.sum_us;
    longest = std::max(longest, each.sum_us);
  }
  return all - longest;
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

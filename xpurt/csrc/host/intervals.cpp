#include "host/intervals.h"

#include <algorithm>

namespace xpurt {

void Intervals::add(Interval range) {
  if (range.begin >= range.end) return;
  List result;
  for (const Interval& each : ranges_) {
    if (each.end < range.begin || range.end < each.begin) {
      result.push_back(each);
    } else {
      range = {std::min(range.begin, each.begin), std::max(range.end, each.end)};
    }
  }
  result.push_back(range);
  std::sort(result.begin(), result.end(),
            [](const Interval& a, const Interval& b) { return a.begin < b.begin; });
  ranges_ = std::move(result);
}

void Intervals::remove(Interval range) {
  List result;
  for (const Interval& each : ranges_) {
    const Interval before{each.begin, std::min(each.end, range.begin)};
    const Interval after{std::max(each.begin, range.end), each.end};
    if (before.begin < before.end) result.push_back(before);
    if (after.begin < after.end) result.push_back(after);
  }
  ranges_ = std::move(result);
}

bool Intervals::covers(Interval range) const {
  if (range.begin >= range.end) return true;
  return std::any_of(ranges_.begin(), ranges_.end(), [&](const Interval& each) {
    return each.begin <= range.begin && range.end <= each.end;
  });
}

size_t Intervals::bytes() const {
  size_t sum = 0;
  for (const Interval& each : ranges_) sum += each.size();
  return sum;
}

Intervals::List Intervals::inside(Interval range) const {
  List result;
  for (const Interval& each : ranges_) {
    const Interval common{std::max(each.begin, range.begin),
                          std::min(each.end, range.end)};
    if (common.begin < common.end) result.push_back(common);
  }
  return result;
}

Intervals::List Intervals::missing(Interval range) const {
  List result;
  for (const Interval& each : inside(range)) {
    if (range.begin < each.begin) result.push_back({range.begin, each.begin});
    range.begin = each.end;
  }
  if (range.begin < range.end) result.push_back(range);
  return result;
}

}  // namespace xpurt

#include "schedule/planning/backlog.h"

#include <algorithm>

namespace xpurt {

void Backlog::correct(size_t position, double end, double now, bool has_ended) {
  // The check comes late: work that has ended by now took at most this long.
  const bool as_predicted = has_ended == (end <= now);
  if (as_predicted || free_[position] <= 0) return;
  free_[position] = std::max(free_[position] + now - end, now);
}

void Backlog::take_back(size_t position, double begin, double end) {
  // A wait may have set the clock back meanwhile.
  if (free_[position] < end) return;
  free_[position] = std::max(free_[position] - (end - begin), begin);
}

void Backlog::clear() {
  std::fill(free_.begin(), free_.end(), 0.0);
  ++age_;
}

}  // namespace xpurt

#include "cpu_tensors/paired_choice.h"

#include <algorithm>

#include "host/mutex.h"

namespace xpurt {
namespace {

constexpr double kReplaces = 0.95;

Mutex& mutex() {
  static auto* const leaked = new Mutex(Rank::cpu_choices);
  return *leaked;
}

void keep_least(double us, double* least) {
  *least = *least == 0 ? us : std::min(*least, us);
}

}  // namespace

CallTurn PairedChoice::next(uint64_t key, double build_us) {
  const uint64_t known = slot(key).load(std::memory_order_relaxed);
  if ((known | 1) == (key | 1)) return {(known & 1) != 0, false};
  const std::lock_guard<Mutex> lock(mutex());
  const bool full = classes_.size() >= kMostClasses;
  if (full && !classes_.contains(key)) return {};
  Class& each = classes_[key];
  if (each.is_decided) {
    decide(key, each, each.by_row);
    return {each.by_row, false};
  }
  if (each.turn == 0 && each.spent_us < build_us) return {false, true};
  // Stock, stock timed, row, row timed, until enough timed calls have ended.
  const uint64_t turn = each.turn++ % 4;
  return {turn >= 2, turn % 2 == 1};
}

void PairedChoice::record(uint64_t key, bool by_row, double us) {
  const std::lock_guard<Mutex> lock(mutex());
  Class& each = classes_[key];
  if (each.is_decided) return;
  if (each.turn == 0) {
    each.spent_us += us;
    return;
  }
  keep_least(us, by_row ? &each.least.row_us : &each.least.stock_us);
  ++(by_row ? each.row_times : each.stock_times);
  if (each.row_times >= kRounds && each.stock_times >= kRounds) {
    decide(key, each, each.least.row_us < kReplaces * each.least.stock_us);
  }
}

void PairedChoice::refuse(uint64_t key) {
  const std::lock_guard<Mutex> lock(mutex());
  decide(key, classes_[key], false);
}

PairedTimes PairedChoice::times(uint64_t key) {
  const std::lock_guard<Mutex> lock(mutex());
  const auto found = classes_.find(key);
  return found == classes_.end() ? PairedTimes{} : found->second.least;
}

void PairedChoice::decide(uint64_t key, Class& each, bool by_row) {
  each.is_decided = true;
  each.by_row = by_row;
  slot(key).store((key & ~uint64_t{1}) | static_cast<uint64_t>(by_row),
                  std::memory_order_relaxed);
}

}  // namespace xpurt

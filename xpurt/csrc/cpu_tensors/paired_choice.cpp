#include "cpu_tensors/paired_choice.h"

#include "host/mutex.h"

namespace xpurt {
namespace {

Mutex& mutex() {
  static auto* const leaked = new Mutex(Rank::cpu_choices);
  return *leaked;
}

}  // namespace

FormTurn PairedChoice::next(uint64_t key, double build_us) {
  const uint64_t known = slot(key).load(std::memory_order_relaxed);
  if ((known | 1) == (key | 1)) return {(known & 1) != 0, false};
  const std::lock_guard<Mutex> lock(mutex());
  const bool full = classes_.size() >= kMostClasses;
  if (full && !classes_.contains(key)) return {};
  TwoForms& forms = classes_.try_emplace(key, build_us, 0.0, true).first->second;
  const FormTurn turn = forms.next();
  keep_quick(key, forms);
  return turn;
}

void PairedChoice::record(uint64_t key, bool by_row, double us) {
  const std::lock_guard<Mutex> lock(mutex());
  const auto found = classes_.find(key);
  if (found == classes_.end()) return;
  found->second.record(by_row, us);
  keep_quick(key, found->second);
}

void PairedChoice::refuse(uint64_t key) {
  const std::lock_guard<Mutex> lock(mutex());
  const auto found = classes_.find(key);
  if (found == classes_.end()) return;
  found->second.refuse();
  keep_quick(key, found->second);
}

PairedTimes PairedChoice::times(uint64_t key) {
  const std::lock_guard<Mutex> lock(mutex());
  const auto found = classes_.find(key);
  if (found == classes_.end()) return {};
  return {found->second.least_us(false), found->second.least_us(true)};
}

void PairedChoice::keep_quick(uint64_t key, const TwoForms& forms) {
  const std::optional<bool> by_row = forms.decided();
  if (!by_row) return;
  slot(key).store((key & ~uint64_t{1}) | static_cast<uint64_t>(*by_row),
                  std::memory_order_relaxed);
}

}  // namespace xpurt

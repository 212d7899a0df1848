#include "schedule/planning/parallelism.h"

#include <algorithm>
#include <cmath>

namespace xpurt {
namespace {

// The time of PyTorch's kernel that an overlapped op may take at most.
constexpr double kClearlyLess = 0.95;

}  // namespace

double Parallelism::ready_us(const Operand& read) {
  Known& known = known_[place_of(read)];
  const bool is_known = known.window > 0 && known.operand.value == read.value &&
                        known.operand.version == read.version;
  if (!is_known) {
    known = {read, window_, span_us_};
    join();
  }
  return known.window == window_ ? known.end_us : 0;
}

double Parallelism::add(double cost_us, c10::ArrayRef<Operand> reads, bool blocks) {
  if (ops_ == kWindow) {
    past_work_us_ = past_work_us_ / 2 + work_us_;
    past_span_us_ = past_span_us_ / 2 + span_us_;
    work_us_ = span_us_ = base_us_ = 0;
    ops_ = 0;
    ++window_;
  }
  ++ops_;
  double ready = 0;
  for (const Operand& read : reads) ready = std::max(ready, ready_us(read));
  const double begin = std::max(ready, base_us_);
  const double end = begin + cost_us;
  work_us_ += cost_us;
  span_us_ = std::max(span_us_, end);
  if (blocks) base_us_ = end;
  return end;
}

void Parallelism::add_result(const Operand& result, double end_us) {
  const Known& known = known_[place_of(result)];
  const bool is_there = known.operand.value == result.value &&
                        known.window == window_ && known.end_us == end_us;
  if (!is_there) add_written(result, end_us);
}

double Parallelism::average() const {
  const double span = past_span_us_ + span_us_;
  return span > 0 ? (past_work_us_ + work_us_) / span : 1;
}

Overlap::Overlap(const Candidates& candidates, size_t home, bool with_unproven) {
  const auto us = [&](const Candidate& each) {
    return with_unproven ? each.cost_us : each.offered_us();
  };
  kernel_us = us(candidates[home]);
  native_us = us(candidates.back());
  for (size_t i = 0; i + 1 < candidates.size(); ++i) {
    if (i != home) others += 1 / (us(candidates[i]) + candidates[i].moves_us);
  }
}

double Overlap::us(double parallelism) const {
  if (!std::isfinite(kernel_us)) return kernel_us;
  const double devices = 1 + kernel_us * others;
  const double chain = 1 / parallelism;
  return kernel_us * (chain + (1 - chain) / devices);
}

bool Overlap::prefers_queue(double parallelism, bool is_in_use) const {
  if (!std::isfinite(kernel_us)) return false;
  if (std::min(kernel_us, native_us) < kLongUs) return false;
  return us(parallelism) < (is_in_use ? 1 : kClearlyLess) * native_us;
}

}  // namespace xpurt

#include "schedule/tier_learner.h"

#include <algorithm>
#include <cmath>

namespace xpurt {
namespace {

constexpr double kOverheadFraction = 0.01;  // of the time, for samples and for trials
constexpr double kSampleUs = 0.5;           // bookkeeping of a sample
constexpr double kTrialRatio = 2;  // an untimed tier that costs more is not tried
constexpr double kMargin = 0.9;    // fraction of the other tier's time needed to win
constexpr int kTrialSamples = 4;   // the first one warms up
constexpr uint32_t kMinInterval = 15;  // for short calls, once kKept times are known
constexpr double kLongIntervalUs = 2000;
constexpr uint32_t kMaxInterval = 1 << 20;

}  // namespace

void TierLearner::Times::add(double time_us) {
  us[next] = time_us;
  next = (next + 1) % kKept;
  count = std::min(count + 1, kKept);
}

double TierLearner::Times::median() const {
  auto sorted = us;
  std::fill(sorted.begin() + count, sorted.end(), HUGE_VAL);
  std::sort(sorted.begin(), sorted.end());
  const int middle = count / 2;
  return count % 2 != 0 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

TierLearner::TierLearner(TierCosts expected_us, bool is_built)
    : expected_(expected_us), built_(is_built) {}

double TierLearner::estimate(bool kernel) const {
  if (times_[kernel].count > 0) return times_[kernel].median();
  const double expected = kernel ? expected_.kernel : expected_.native;
  const double of_other = kernel ? expected_.native : expected_.kernel;
  // An op costs more or less than the probe op of its class, by about the same factor
  // on both tiers.
  return times_[!kernel].count > 0 ? expected * times_[!kernel].median() / of_other
                                   : expected;
}

bool TierLearner::is_time_for_trial(double build_us) const {
  if (times_[kernel_].count < kEnough) return false;
  const double now = estimate(kernel_), other = estimate(!kernel_);
  const bool is_new = times_[!kernel_].count == 0;
  // Samples of an untimed tier that is expected to win cost nothing extra.
  double price = is_new && other < now ? 0 : kTrialSamples * other;
  if (!kernel_ && !built_) price += build_us;
  if (other >= kTrialRatio * now) {
    if (is_new) return false;
    price *=
        1 / kOverheadFraction;  // it has lost before: it wins only if something changed
  }
  const double saved = other < now ? spent_us_ * (1 - other / now) : 0;
  return std::max(saved, spent_us_ * kOverheadFraction) >= price * backoff_;
}

TierLearner::TimedSample TierLearner::next(uint32_t calls, double build_us) {
  spent_us_ += (calls + 1) * estimate(kernel_);
  if (trial_ == 0 && is_time_for_trial(build_us)) trial_ = kTrialSamples;
  if (trial_ == 0) return {kernel_, true};
  return {!kernel_, trial_ < kTrialSamples};
}

void TierLearner::record(TimedSample sample, double us, double stall_us) {
  if (sample.kernel) built_ = true;
  if (sample.counts) times_[sample.kernel].add(us);
  interval_ = 0;
  if (sample.kernel != kernel_) {
    // Another thread may have ended the trial meanwhile.
    if (trial_ > 0 && --trial_ == 0) end_trial();
    return;
  }
  if (trial_ > 0) return;
  const double calls = (stall_us + kSampleUs) / kOverheadFraction / std::max(us, 1e-3);
  interval_ = static_cast<uint32_t>(std::min<double>(calls, kMaxInterval));
  if (times_[kernel_].count < kKept) return;
  const double others =
      std::min<double>(kMinInterval, kLongIntervalUs / std::max(us, 1e-3));
  interval_ = std::max(interval_, static_cast<uint32_t>(others));
}

void TierLearner::end_trial() {
  spent_us_ = 0;
  if (estimate(!kernel_) < kMargin * estimate(kernel_)) {
    kernel_ = !kernel_;
    backoff_ = 1;
  } else {
    backoff_ *= 2;
  }
}

}  // namespace xpurt

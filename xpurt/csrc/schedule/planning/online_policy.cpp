#include "schedule/planning/online_policy.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <cmath>

namespace xpurt {
namespace {

// Another device becomes the best one only if it would have needed less than this
// fraction of the time: two equal devices should not alternate.
constexpr double kClearly = 0.95;

// The mix may be behind the best device alone by this fraction of the work seen.
constexpr double kSlackFraction = 0.001;

// Past costs are halved after every so many ops.
constexpr uint32_t kFadeEvery = 4096;

}  // namespace

OnlinePolicy::OnlinePolicy(size_t devices) : alone_(devices), work_(devices) {
  TORCH_CHECK_VALUE(devices > 0, "a policy needs a device to choose");
}

void OnlinePolicy::remember(c10::ArrayRef<double> work) {
  TORCH_CHECK_VALUE(work.size() == work_.size(), "a policy for ", work_.size(),
                    " devices was given the work of ", work.size());
  for (const double each : work) {
    TORCH_CHECK_VALUE(std::isfinite(each) && each >= 0, "work of ", each,
                      " is no time");
  }
  for (size_t i = 0; i < work.size(); ++i) work_[i] += work[i];
  best_ = std::min_element(work_.begin(), work_.end()) - work_.begin();
}

size_t OnlinePolicy::choose(c10::ArrayRef<Candidate> candidates, double now,
                            bool is_idle) {
  TORCH_CHECK_VALUE(candidates.size() == alone_.size(), "a policy for ", alone_.size(),
                    " devices was given ", candidates.size());
  account(candidates, now, is_idle);
  const double latest = std::max(deadline(), streamed_end(candidates[best_], now));
  size_t allowed = best_;
  double earliest_allowed = Candidate::kNever;
  size_t any = best_;
  double earliest = Candidate::kNever;
  for (size_t i = 0; i < candidates.size(); ++i) {
    const Candidate& each = candidates[i];
    const double finish = std::max(each.start_us(), now) + each.offered_us();
    if (finish < earliest) {
      earliest = finish;
      any = i;
    }
    if (finish < earliest_allowed && (i == best_ || finish + each.leave_us <= latest)) {
      earliest_allowed = finish;
      allowed = i;
    }
  }
  TORCH_CHECK_VALUE(earliest < Candidate::kNever, "no device can run the op");
  const bool found = earliest_allowed < Candidate::kNever;
  latest_ = std::max(latest_, found ? earliest_allowed : earliest);
  note_gain(candidates, now, found ? earliest_allowed : earliest);
  return found ? allowed : any;
}

// When the best device would end the op, if it has to copy operands for it that do not
// stay; else 0.
double OnlinePolicy::streamed_end(const Candidate& best, double now) {
  return best.streams_us > 0 ? std::max(best.start_us(), now) + best.offered_us() : 0;
}

double OnlinePolicy::deadline() const {
  return alone_[best_] + std::max(0.0, kSlackFraction * work_[best_] - debt_);
}

void OnlinePolicy::account(c10::ArrayRef<Candidate> candidates, double now,
                           bool is_idle) {
  double cheapest = Candidate::kNever;
  for (const Candidate& each : candidates) {
    cheapest = std::min(cheapest, each.alone_us());
  }
  // A gain so far is no credit for later losses, but a loss so far stays spent.
  if (is_idle) debt_ += std::max(0.0, latest_ - alone_[best_]);
  const bool fades = ++ops_ % kFadeEvery == 0;
  if (fades) debt_ /= 2;
  for (size_t i = 0; i < candidates.size(); ++i) {
    // An op that the device cannot run counts as run by the cheapest candidate.
    const double alone = candidates[i].alone_us();
    const double cost = std::isfinite(alone) ? alone : cheapest;
    alone_[i] = (is_idle ? now : std::max(alone_[i], now)) + cost;
    work_[i] += cost;
    if (fades) work_[i] /= 2;
  }
  const size_t best = std::min_element(work_.begin(), work_.end()) - work_.begin();
  const double move = ops_ == 1 ? 0 : candidates[best_].leave_us;
  if (work_[best] + move < kClearly * work_[best_]) best_ = best;
}

void OnlinePolicy::note_gain(c10::ArrayRef<Candidate> candidates, double now,
                             double finish) {
  double free = now;
  for (const Candidate& each : candidates) free = std::max(free, each.free_us);
  // What was predicted may have ended before.
  const double before = std::max(now, std::min(mix_end_, free));
  mix_end_ = std::max(before, finish);
  const double alone = candidates[best_].alone_us();
  gained_us_ = std::isfinite(alone) ? alone - (mix_end_ - before) : 0;
}

}  // namespace xpurt

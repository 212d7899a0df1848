#include "schedule/exploration.h"

#include <algorithm>

#include "schedule/planning/parallelism.h"

namespace xpurt {
namespace {

// The first few samples in a row are timed, since every choice depends on them.
constexpr uint64_t kFirstSamples = 3;
constexpr uint32_t kIntervalLearning = 3;  // calls between two timed samples

// Samples cost at most this fraction of the calls' time.
constexpr double kSampleFraction = 0.01;
constexpr double kSampleUs = 3;  // of a full decision, two clocks and a wait
constexpr uint32_t kMinInterval = 15;
constexpr double kLongIntervalUs =
    2000;  // least time between two samples of long calls
constexpr uint32_t kMaxInterval = 255;

// A candidate that is not in use is tried once its trial costs less than this fraction
// of the time spent. If it is expected to take more than kUnlikelyRatio times as long,
// the trial counts kUnlikelyFactor times as much. It is never ruled out: the cause of
// its slow times may have passed.
constexpr int kTrials = 3;
constexpr double kTrialFraction = 0.01;
constexpr double kUnlikelyRatio = 4;
constexpr double kUnlikelyFactor = 10;
// The fraction for a candidate with too few timed samples: all of them may have been
// disturbed.
constexpr double kUnsureFraction = 0.1;

// The same ratio for a candidate that was never timed, of a long op that the devices
// could compute together: see Note [Untimed parts].
constexpr double kUnlikelyPartRatio = 8;

// At least this fraction of the calls' time counts as regret: the expectation may be
// wrong. On several devices it is more, since a kernel leaves the host free to submit
// work to the others.
constexpr double kMinRegret = 0.01;
constexpr double kMinRegretOnSeveral = 0.2;

// A candidate replaces the one in use if it takes less than this fraction of its time:
// two equal ones should not alternate.
constexpr double kReplaces = 0.95;

// If two candidates at home take about as long and the op is long, the one that does
// not block the host is better.
constexpr double kAbout = 1.02;

}  // namespace

// Note [Exploration]
// ~~~~~~~~~~~~~~~~~~
// A candidate that was never timed may need a build, its first calls are warm-up, and
// its expected time may be wrong. So it is held back until its regret equals the
// expected price of its trial. That is the rule of ski rental (Karlin, Manasse, Rudolph
// and Sleator, 1988): a short program never builds a kernel that does not pay within
// it, and a long one loses at most as much again as it would have lost anyway. Copies
// do not count in the regret: if all ops move to another device, their data are there.
// An op that takes longer than a build is run there at once. PyTorch's CPU kernel needs
// no build and is never new.
//
// The time of a candidate that lost is old. It is tried again once the trial costs less
// than 1% of the time spent. Each lost trial doubles that time.
//
// A submission returns before its kernel has run. So a valid time is that of a call on
// an idle stream, until the stream is idle again. Such a sample costs the overlap of
// host and device. Samples are so rare that this is 1% of the calls' time, but not
// rarer than one call in kMaxInterval.
//
// The rule is the same on one device, where the candidates are the row's kernel and
// PyTorch's, and on several. Two learners with rules of their own, one for each case,
// were rejected: they disagreed about the same calls, and each mistake had to be mended
// twice.
//
// Note [Untimed parts]
// ~~~~~~~~~~~~~~~~~~~~
// A device that loses alone may still do a part of a large op. Whether it should is
// known only once its kernel was timed. The same holds for home's kernel, which runs
// home's shard: PyTorch's kernel computes whole ops. Sums of rows were expected to take
// five times as long by home's kernel, and took 1.2 times as long. A convolution by
// oneDNN on home's queue took 0.6 of the time of PyTorch's kernel, and was never tried
// during forty calls. So such a candidate is tried as soon as one with few samples, as
// long as it is not expected to take many times as long.
bool Exploration::is_new(size_t candidate) const {
  const auto& candidates = found_.bucket().candidates;
  return candidate + 1 < candidates.size() &&
         candidates[candidate].factor.count() == 0 && !is_measured(found_, candidate);
}

double Exploration::build_us(size_t candidate) const {
  return (found_.sizes.built >> candidate & 1) != 0 ? 0 : build_us_;
}

void Exploration::hold_back_unproven(Candidates* candidates, size_t home) const {
  const size_t native = candidates->size() - 1;
  if (!(*candidates)[native].is_possible()) return;
  double finish = Candidate::kNever, cost = Candidate::kNever;
  for (size_t candidate = 0; candidate <= native; ++candidate) {
    if (is_new(candidate)) continue;
    finish = std::min(finish, (*candidates)[candidate].finish_us());
    cost = std::min(cost, (*candidates)[candidate].cost_us);
  }
  // None of what could run at the same time does so without each of the kernels.
  const bool overlaps = native > 1 && cost >= kLongUs;
  const double overlapped_us =
      overlaps ? Overlap(*candidates, home, true).us(parallelism_) : cost;
  const double least = native > 1 ? kMinRegretOnSeveral : kMinRegret;
  for (size_t candidate = 0; candidate < native; ++candidate) {
    Candidate& each = (*candidates)[candidate];
    if (!each.can_run() || !is_new(candidate)) continue;
    CandidateStatistics& known = found_.bucket().candidates[candidate];
    const double gain = std::max(
        {finish - each.finish_us(), cost - each.cost_us, cost - overlapped_us});
    known.regret_us += std::max(gain, least * cost) * calls_;
    each.held_back = known.regret_us < build_us(candidate) + kTrials * each.cost_us;
  }
}

size_t Exploration::choose_at_home(const Candidates& candidates, size_t home) const {
  const size_t native = candidates.size() - 1;
  StatisticsBucket& bucket = found_.bucket();
  const LearnedCost& of_kernel = bucket.candidates[home].factor;
  const LearnedCost& of_native = bucket.candidates[native].factor;
  const double kernel_us = candidates[home].offered_us();
  const double native_us = candidates[native].offered_us();
  double margin = 1;
  if (of_kernel.is_known() && of_native.is_known()) {
    margin = bucket.in_use == home ? kReplaces : 1 / kReplaces;
  }
  size_t others = 0;
  for (size_t candidate = 0; candidate < native; ++candidate) {
    if (candidate != home && candidates[candidate].can_run()) ++others;
  }
  const bool frees_host = others > 0 && of_kernel.is_known() && kernel_us > kLongUs;
  const bool by_kernel =
      kernel_us * margin < native_us ||
      (frees_host && kernel_us <= kAbout * native_us) ||
      (native > 1 && Overlap(candidates, home, false)
                         .prefers_queue(parallelism_, bucket.in_use == home));
  bucket.in_use = by_kernel ? home : native;
  return bucket.in_use;
}

double spent_before_trial(const UnusedCandidate& unused, double now_us,
                          bool may_divide) {
  const bool is_part = may_divide && unused.is_new && now_us >= kLongUs;
  const double unlikely = is_part ? kUnlikelyPartRatio : kUnlikelyRatio;
  const bool is_unlikely = unused.cost_us > unlikely * now_us;
  double price = kTrials * (unused.cost_us + unused.moves_us);
  if (is_unlikely) price *= kUnlikelyFactor;
  if (unused.is_new) price += unused.build_us;
  const bool is_sure = !unused.is_unsure && (!is_part || is_unlikely);
  return price / (is_sure ? kTrialFraction : kUnsureFraction);
}

size_t Exploration::trial(const Candidates& candidates, size_t chosen) const {
  StatisticsBucket& bucket = found_.bucket();
  const double now_us = candidates[chosen].cost_us;
  if (!candidates[chosen].can_run()) return chosen;
  bucket.spent_us += now_us * calls_;
  bucket.calls += calls_;
  bucket.candidates[chosen].backoff = 1;
  for (size_t candidate = 0; candidate < candidates.size(); ++candidate) {
    const Candidate& each = candidates[candidate];
    if (candidate == chosen || !each.can_run()) continue;
    if (now_us < kLongUs && each.moves_us > 0) continue;  // see Note [Short ops]
    CandidateStatistics& other = bucket.candidates[candidate];
    if (other.trials > 0) {
      --other.trials;
      return candidate;
    }
    const bool is_unsure = other.factor.is_known() && !other.factor.has_converged();
    const UnusedCandidate unused{each.cost_us, each.moves_us, build_us(candidate),
                                 is_new(candidate), is_unsure};
    const double wait_us = spent_before_trial(unused, now_us, may_divide_);
    if (bucket.spent_us < wait_us * other.backoff) continue;
    bucket.spent_us = 0;
    other.backoff *= 2;
    other.trials = kTrials - 1;
    return candidate;
  }
  return chosen;
}

bool is_sample_due(StatisticsBucket& bucket, const LearnedCost& cost, double us,
                   double stall_us) {
  if (bucket.calls < sampling_interval(cost.count(), us, stall_us)) return false;
  bucket.calls = 0;
  return true;
}

void make_sample_due(StatisticsBucket& bucket) {
  bucket.calls = kMaxInterval;
}

uint32_t sampling_interval(uint64_t samples, double us, double stall_us) {
  if (samples < kFirstSamples) return 0;
  if (samples < LearnedCost::kNeeded) return kIntervalLearning;
  const double call_us = std::max(us, 1e-3);
  const double paid = (stall_us + kSampleUs) / kSampleFraction / call_us;
  const double least = std::min<double>(kMinInterval, kLongIntervalUs / call_us);
  return static_cast<uint32_t>(std::clamp<double>(paid, least, kMaxInterval));
}

void record_sample(const FoundBucket& found, size_t candidate, double factor,
                   double stall_us, LearnedCost CandidateStatistics::* learned) {
  StatisticsBucket& bucket = found.bucket();
  (bucket.candidates[candidate].*learned).record(factor);
  bucket.candidates[candidate].stall_us = stall_us;
  bucket.forget_choices();
  found.sizes.built |= uint64_t{1} << candidate;
}

}  // namespace xpurt

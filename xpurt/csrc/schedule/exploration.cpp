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
constexpr double kMostIntervalUs = 5e5;  // of calls that take longer than 2 ms

// A candidate that is not in use is tried once its trial costs less than this fraction
// of the time spent. If it is expected to take more than kUnlikelyRatio times as long,
// the trial counts kUnlikelyFactor times as much. It is never ruled out: the cause of
// its slow times may have passed.
constexpr int kTrials = 3;
constexpr double kTrialFraction = 0.01;
constexpr double kUnlikelyRatio = 4;
constexpr double kUnlikelyFactor = 10;
// The fraction for a candidate with too few timed samples, all of which may have been
// disturbed, and for one with stale times. For the latter it falls with each trial that
// is lost.
constexpr double kUnsureFraction = 0.1;

// On one device a lost trial does not delay the next one beyond this time.
constexpr double kMostWaitUs = 1e6;

// See Note [Comparisons]. The samples of a candidate that end one, those on which an
// estimate is based that tells a change, and the ratio that does.
constexpr int kCompared = 2;
constexpr uint64_t kKnownSamples = 5;
constexpr double kChanged = 1.35;

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

bool is_far(double ratio) {
  return ratio > kChanged || ratio < 1 / kChanged;
}

// A time that is far from the estimate is either an interruption or a change of the
// machine, which the next call shows.
void look_for_change(StatisticsBucket& bucket, size_t candidate, double factor) {
  CandidateStatistics& own = bucket.candidates[candidate];
  if (own.is_compared || own.factor.count() < kKnownSamples) return;
  const bool was_off = own.is_off;
  own.is_off = is_far(factor / std::max(own.factor.estimate(1), 1e-9));
  if (!own.is_off) return;
  make_sample_due(bucket);
  if (!was_off) return;
  for (CandidateStatistics& other : bucket.candidates) {
    if (&other != &own && other.factor.is_known()) other.is_stale = true;
  }
}

// Ends a comparison that has enough times of both candidates.
void end_comparison(StatisticsBucket& bucket) {
  bool has_changed = false;
  for (const CandidateStatistics& each : bucket.candidates) {
    if (!each.is_compared) continue;
    if (each.factor.newer() < kCompared) return;
    const double before = std::max(each.factor.estimate(1), 1e-9);
    has_changed |= is_far(each.factor.newest().estimate(1) / before);
  }
  for (CandidateStatistics& each : bucket.candidates) {
    if (each.is_compared && has_changed) each.factor = each.factor.newest();
    each.is_compared = false;
  }
}

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
// Note [Comparisons]
// ~~~~~~~~~~~~~~~~~~
// Times of different minutes do not compare: other programs come and go. A variance
// took 39 ms by its parts and 28 ms by PyTorch's kernel, and was computed by its parts
// in 1,235 of 1,600 calls, since PyTorch's kernel had been timed while other programs
// ran, and a trial of three calls does not move the median of nine old times.
//
// So a trial times both, one after the other: the candidate that is not in use, and
// then the one that is. So does the first use of a kernel on the only device, which may
// be chosen by its expected time. If one of them takes another time than before, the
// older times of both are dropped. Otherwise they count, so that noise does not make it
// sway.
//
// Two samples in a row that are far from the estimate show a change of the machine.
// What is known of the other candidates is then stale, and they are tried as soon as
// those with few samples. On a machine whose times change all the time that would be
// often, so the price of such a trial doubles with each one that is lost, until one is
// due without a change.
//
// Only the time of a candidate in use shows a change. A load that delays one kernel
// alone ends unseen while the other one is in use. So on one device, where a trial
// moves no data, calls of some milliseconds are tried again after a second, whatever
// was lost.
//
// The samples of two_forms.h alternate, too. They begin with a first call that is not
// timed, since its callers move whole models. Here it would cost as much as a sample.
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
  const bool is_stale = unused.false_alarms > 0;
  const bool is_unlikely = !is_stale && unused.cost_us > unlikely * now_us;
  // A stale time is no reason to wait longer.
  const double cost_us = is_stale ? std::min(unused.cost_us, now_us) : unused.cost_us;
  double price = kTrials * (cost_us + unused.moves_us);
  if (is_unlikely) price *= kUnlikelyFactor;
  if (unused.is_new) price += unused.build_us;
  const bool is_sure = !unused.is_unsure && (!is_part || is_unlikely);
  if (is_stale) {
    return price / std::max(kUnsureFraction / unused.false_alarms, kTrialFraction);
  }
  return price / (is_sure ? kTrialFraction : kUnsureFraction);
}

bool Exploration::is_trial_due(const Candidates& candidates, size_t candidate,
                               double now_us) const {
  const Candidate& each = candidates[candidate];
  const CandidateStatistics& known = found_.bucket().candidates[candidate];
  const UnusedCandidate unused{
      .cost_us = each.cost_us,
      .moves_us = each.moves_us,
      .build_us = build_us(candidate),
      .is_new = is_new(candidate),
      .is_unsure = known.factor.is_known() && !known.factor.has_converged(),
      .false_alarms = known.is_stale ? known.false_alarms : 0};
  double wait_us = spent_before_trial(unused, now_us, may_divide_);
  if (!known.is_stale) {
    const bool on_one = candidates.size() == 2;
    const double most_us = std::max(wait_us, on_one ? kMostWaitUs : Candidate::kNever);
    wait_us = std::min(wait_us * known.backoff, most_us);
  }
  return found_.bucket().spent_us >= wait_us;
}

void Exploration::begin_trial(size_t candidate, size_t chosen) const {
  StatisticsBucket& bucket = found_.bucket();
  CandidateStatistics& tried = bucket.candidates[candidate];
  if (tried.is_stale) {
    tried.false_alarms *= 2;
  } else {
    tried.backoff *= 2;
    tried.false_alarms = 1;  // no alarm came for as long
  }
  tried.is_stale = false;
  bucket.spent_us = 0;
  compare(candidate, chosen);
}

void Exploration::compare(size_t candidate, size_t chosen) const {
  StatisticsBucket& bucket = found_.bucket();
  for (CandidateStatistics& each : bucket.candidates) each.is_compared = false;
  for (const size_t each : {candidate, chosen}) {
    CandidateStatistics& compared = bucket.candidates[each];
    compared.is_compared = true;
    compared.factor.begin_comparison();
    compared.trials = kTrials;
  }
}

void Exploration::compare_if_adopted(const Candidates& candidates,
                                     size_t chosen) const {
  if (candidates.size() != 2 || !is_new(chosen)) return;
  const auto& known = found_.bucket().candidates;
  if (known[chosen].trials > 0 || !known.back().factor.is_known()) return;
  compare(candidates.size() - 1, chosen);
}

size_t Exploration::trial(const Candidates& candidates, size_t chosen) const {
  StatisticsBucket& bucket = found_.bucket();
  const double now_us = candidates[chosen].cost_us;
  if (!candidates[chosen].can_run()) return chosen;
  bucket.spent_us += now_us * calls_;
  bucket.calls += calls_;
  CandidateStatistics& in_use = bucket.candidates[chosen];
  in_use.backoff = in_use.false_alarms = 1;
  in_use.is_stale = false;
  compare_if_adopted(candidates, chosen);
  for (size_t candidate = 0; candidate < candidates.size(); ++candidate) {
    const Candidate& each = candidates[candidate];
    if (candidate == chosen || !each.can_run()) continue;
    if (now_us < kLongUs && each.moves_us > 0) continue;  // see Note [Short ops]
    CandidateStatistics& other = bucket.candidates[candidate];
    if (other.trials == 0) {
      if (in_use.trials > 0 || !is_trial_due(candidates, candidate, now_us)) continue;
      begin_trial(candidate, chosen);
    }
    --other.trials;
    return candidate;
  }
  if (in_use.trials > 0) {
    --in_use.trials;
    make_sample_due(bucket);
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
  const double paid = std::min((stall_us + kSampleUs) / kSampleFraction,
                               std::max(kMostIntervalUs, call_us)) /
                      call_us;
  const double least = std::min<double>(kMinInterval, kLongIntervalUs / call_us);
  return static_cast<uint32_t>(std::clamp<double>(paid, least, kMaxInterval));
}

void record_sample(const FoundBucket& found, size_t candidate, double factor,
                   double stall_us, LearnedCost CandidateStatistics::* learned) {
  StatisticsBucket& bucket = found.bucket();
  const bool is_whole = learned == &CandidateStatistics::factor;
  if (is_whole) look_for_change(bucket, candidate, factor);
  (bucket.candidates[candidate].*learned).record(factor);
  if (is_whole) end_comparison(bucket);
  bucket.candidates[candidate].stall_us = stall_us;
  bucket.forget_choices();
  found.sizes.built |= uint64_t{1} << candidate;
}

}  // namespace xpurt

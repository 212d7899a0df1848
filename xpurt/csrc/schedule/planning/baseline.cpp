#include "schedule/planning/baseline.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "schedule/planning/parallelism.h"

namespace xpurt {
namespace {

// Before the first comparison most times are learned. Other devices must have had this
// part of the work.
constexpr double kFirstUs = 6e6;
constexpr double kLeastElsewhere = 0.005;

// The begin of a turn that is not measured, and the least time of the measured part:
// some rounds, but few long ones. After a change of arms operands have to be copied
// again, which takes some ops if the program has no rounds.
constexpr double kSettlingUs = 30e3, kFirstSettlingUs = 1.5e6;
constexpr int kSettlingOps = 16;
constexpr double kTurnUs = 100e3;
constexpr double kRounds = 3;
constexpr double kMostRoundsUs = 200e3;  // without the first round

// If the place where turns end has not been met for this many of its intervals, the
// program has changed, and they end anywhere.
constexpr double kMissedIntervals = 4;

// All devices keep the program if it takes less than this fraction of the time. What
// gains next to nothing may lose much later, when the ops of a step have other devices.
constexpr double kWorthwhile = 0.97;

// Pairs of turns. Fewer than the most are enough if each has a clear ratio, or if the
// mean ratio is not kWorthwhile by Student's test (1908) of the logarithms, two-sided,
// of 5%. So a tie, where a turn of the losing arm costs most, is decided early.
constexpr size_t kLeastPairs = 2;
constexpr double kStudent[] = {12.71, 4.30, 3.18, 2.78, 2.57, 2.45};
constexpr size_t kMostPairs = kLeastPairs + std::size(kStudent);
constexpr double kClearRatio = 1.1;

// The program is not watched for this many times of a comparison after it.
constexpr double kUnwatched = 2;

// Long ops by which another program is told, and the least time of one that is new.
constexpr int kOpsOfAProgram = 32;
constexpr double kClearlyLongUs = 2 * kLongUs;

constexpr double kFirstPause = 10;  // times of a comparison
constexpr double kMostPause = 80;
constexpr double kLongestPauseUs = 60e6;

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace

bool Baseline::add(uint64_t kind, double alone_us, bool elsewhere, double now) {
  bool changes = false;
  if (next_us_ <= 0) next_us_ = now + kFirstUs;
  if (is_comparing()) {
    compared_.set(LoopPlace::eight_bits_of(kind));
    changes = end_turn(now);
  } else if (is_another_program(kind, alone_us)) {
    changes = alone_;
    const std::bitset<256> compared = compared_;
    *this = {};
    compared_ = compared;
    next_us_ = now + kFirstUs;
  } else if (now >= next_us_ || has_slowed(alone_us, now)) {
    if (alone_ || elsewhere_us_ > kLeastElsewhere * work_us_) {
      begun_us_ = now;
      turn_ = 1;
      if (!alone_) anchor_ = place_.once_per_round();  // else too few ops were added
      changes = alone_;
      alone_ = false;
      begin_turn(now);
    } else {
      next_us_ = now + kFirstUs;
    }
    work_us_ = elsewhere_us_ = 0;
  }
  place_.add(kind, now);
  ++turn_ops_;
  work_us_ += alone_us;
  if (elsewhere) elsewhere_us_ += alone_us;
  return changes;
}

// Held to one device, a program adds few of its ops, so it is told by them, and not by
// time. Nor by ops about as long as the shortest that count: they may not have counted
// in the comparison.
bool Baseline::is_another_program(uint64_t kind, double alone_us) {
  if (compared_.none()) return false;
  const bool is_seen = compared_[LoopPlace::eight_bits_of(kind)];
  if (!is_seen && alone_us < kClearlyLongUs) return false;
  (is_seen ? seen_us_ : unseen_us_) += alone_us;
  if (++ops_ < kOpsOfAProgram) return false;
  const bool is_another = unseen_us_ > seen_us_;
  ops_ = 0;
  seen_us_ = unseen_us_ = 0;
  return is_another;
}

// Whether the program has become slower with all devices since they were compared.
bool Baseline::has_slowed(double alone_us, double now) {
  if (alone_ || ratio_ <= 0 || now < watches_from_us_) return false;
  if (watched_since_us_ <= 0) watched_since_us_ = now;
  const double took_us = now - watched_since_us_, work_us = watched_work_us_;
  const bool ends = work_us > 0 && is_there(took_us - std::max(rounds_us(), kTurnUs));
  watched_work_us_ = ends ? alone_us : work_us + alone_us;
  if (!ends) return false;
  watched_since_us_ = now;
  slowed_ = slowing_.add(took_us / work_us);
  return slowed_;
}

void Baseline::begin_turn(double now) {
  turn_us_ = now;
  turn_ops_ = 0;
  measured_us_ = 0;
}

// How long some rounds take. The next visit of the anchor is the end of the last one.
double Baseline::rounds_us() const {
  if (!anchor_.has_value()) return 0;
  const double round_us = anchor_->interval_us;
  return std::min((kRounds - 0.5) * round_us, round_us / 2 + kMostRoundsUs);
}

// Whether a turn may begin or end here. `since_us`: how long it might have done so.
bool Baseline::is_there(double since_us) const {
  if (since_us < 0) return false;
  return !anchor_.has_value() || place_.here() == anchor_->number ||
         since_us > kMissedIntervals * anchor_->interval_us;
}

// Returns whether the arm changes.
bool Baseline::end_turn(double now) {
  if (measured_us_ <= 0) {
    const bool is_first = alone_ && !knows_alone_;
    const double least_us = is_first ? kFirstSettlingUs : kSettlingUs;
    const double since_us = now - turn_us_ - std::max(rounds_us(), least_us);
    if (!anchor_.has_value() && turn_ops_ < kSettlingOps) return false;
    if (!is_there(since_us)) return false;
    knows_alone_ |= alone_;
    measured_us_ = now;
    work_us_ = 0;
    return false;
  }
  const double took_us = now - measured_us_;
  if (work_us_ <= 0 || !is_there(took_us - std::max(rounds_us(), kTurnUs)))
    return false;
  per_work_[alone_ ? 1 : 0] = took_us / work_us_;
  if (turn_ % 2 == 0) {
    ratios_.push_back(per_work_[0] / per_work_[1]);
    of_all_.push_back(per_work_[0]);
    if (is_decided()) return decide(now);
  }
  // The order is all, alone, alone, all: what changes with time does not favor one.
  ++turn_;
  const bool before = alone_;
  alone_ = turn_ % 4 == 2 || turn_ % 4 == 3;
  begin_turn(now);
  return alone_ != before;
}

bool Baseline::is_decided() const {
  const size_t pairs = ratios_.size();
  if (pairs < kLeastPairs) return false;
  if (pairs >= kMostPairs) return true;
  const auto all = [&](auto is_clear) {
    return std::ranges::all_of(ratios_, is_clear);
  };
  if (all([](double each) { return each > kClearRatio; }) ||
      all([](double each) { return each < 1 / kClearRatio; }))
    return true;
  const auto log_of = [](double each) { return std::log(each / kWorthwhile); };
  double mean = 0, squares = 0;
  for (const double each : ratios_) mean += log_of(each) / static_cast<double>(pairs);
  for (const double each : ratios_) squares += std::pow(log_of(each) - mean, 2);
  const auto degrees = static_cast<double>(pairs - 1);
  const double error = std::sqrt(squares / degrees / static_cast<double>(pairs));
  return std::abs(mean) > kStudent[pairs - kLeastPairs] * error;
}

// Returns whether the arm changes.
bool Baseline::decide(double now) {
  ratio_ = median(ratios_);
  ratios_.clear();
  const bool before = alone_;
  alone_ = ratio_ > kWorthwhile;
  pause_ = alone_ == was_alone_ && pause_ > 0 ? std::min(2 * pause_, kMostPause)
                                              : kFirstPause;
  slowing_.restart(median(of_all_), slowed_ && alone_ == was_alone_);
  of_all_.clear();
  slowed_ = false;
  was_alone_ = alone_;
  const double took_us = now - begun_us_;
  watches_from_us_ = now + kUnwatched * took_us;
  watched_since_us_ = watched_work_us_ = 0;
  next_us_ = now + std::max(kFirstPause * took_us,
                            std::min(pause_ * took_us, kLongestPauseUs));
  turn_ = 0;
  work_us_ = elsewhere_us_ = 0;
  return alone_ != before;
}

}  // namespace xpurt

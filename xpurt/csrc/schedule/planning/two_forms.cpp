#include "schedule/planning/two_forms.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace xpurt {
namespace {

constexpr size_t kFirstRounds = 3;  // at least
constexpr size_t kKeptTimes = 5;    // after the first rounds

// Fractions of a time. Below the first one the other form replaces the form in use.
// Within the second one a time confirms the least one. Times that differ by less than
// the third one are a near tie.
constexpr double kReplaces = 0.95;
constexpr double kConfirms = 0.02;
constexpr double kNearTie = 0.05;

// Later rounds: what they may cost, the least calls between two of them, and what the
// waits of one cost, by order of magnitude.
constexpr double kFraction = 0.01;
constexpr double kLeastCalls = 100;
constexpr double kStallUs = 100;

// A clock may show no time at all.
constexpr double kLeastUs = 1e-3;

double least(const std::vector<double>& times) {
  return times.empty() ? 0 : *std::ranges::min_element(times);
}

// Whether a second time confirms the least one. Takes two times or more.
bool is_confirmed(const std::vector<double>& times) {
  std::array<double, 2> two{};
  std::ranges::partial_sort_copy(times, two);
  return two[1] <= (1 + kConfirms) * two[0];
}

}  // namespace

FormTurn TwoForms::next() {
  const bool first = stage_ == Stage::first_rounds;
  // Without enough times by then, calls raised errors.
  if (is_in_round() && turn_ == kTurns * (first ? kMostRounds : 1)) end_rounds();
  if (stage_ == Stage::decided) return {in_use_, false};
  if (!is_in_round()) {
    if (!is_due()) {
      const bool is_first = calls_++ == 0;
      return {in_use_, stage_ == Stage::before && lost_us_ == 0 && !is_first};
    }
    const bool again = times_[0].empty() || times_[1].empty();
    stage_ = again ? Stage::first_rounds : Stage::later_round;
    turn_ = 0;
  }
  const int turn = turn_++ % kTurns;
  return {turn < kTurns / 2 ? in_use_ : !in_use_, turn % 2 == 1};
}

void TwoForms::record(bool second, double us) {
  us = std::max(us, kLeastUs);
  if (stage_ == Stage::decided) return;
  if (stage_ == Stage::before) {
    if (lost_us_ == 0) lost_us_ = us;
    return;
  }
  Times& those = times(second);
  those.push_back(us);
  const size_t kept = stage_ == Stage::first_rounds ? kMostRounds : kKeptTimes;
  if (those.size() > kept) those.erase(those.begin(), those.end() - kept);
  if (stage_ == Stage::first_rounds && is_clear()) end_rounds();
}

void TwoForms::refuse() {
  in_use_ = false;
  stage_ = Stage::decided;
}

std::optional<bool> TwoForms::decided() const {
  if (stage_ != Stage::decided) return std::nullopt;
  return in_use_;
}

double TwoForms::least_us(bool second) const {
  return least(times_[second ? 1 : 0]);
}

bool TwoForms::is_due() const {
  if (stage_ == Stage::between) return calls_ >= wait_;
  return price_us_ <= 0 || (lost_us_ > 0 && calls_ * lost_us_ >= price_us_);
}

// Whether the first rounds have an answer.
bool TwoForms::is_clear() const {
  const size_t rounds = std::min(times_[0].size(), times_[1].size());
  if (rounds < kFirstRounds) return false;
  if (rounds >= kMostRounds) return true;
  const double first = least_us(false), second = least_us(true);
  return std::abs(first - second) >= kNearTie * std::max(first, second) &&
         is_confirmed(times_[0]) && is_confirmed(times_[1]);
}

void TwoForms::end_rounds() {
  stage_ = ends_ ? Stage::decided : Stage::between;
  calls_ = 0;
  wait_ = kLeastCalls;
  double now = least_us(in_use_), other = least_us(!in_use_);
  if (now == 0 || other == 0) return;
  if (other < kReplaces * now) {
    in_use_ = !in_use_;
    std::swap(now, other);
  }
  const double extra_us = 2 * std::max(other - now, 0.0) + kStallUs;
  wait_ = std::max(kLeastCalls, extra_us / (kFraction * now));
}

}  // namespace xpurt

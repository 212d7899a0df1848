#include "schedule/stream_clock.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <unordered_map>

#include "device/device_failure.h"
#include "device/event_status.h"
#include "host/blocked_wait.h"
#include "schedule/scheduler.h"

namespace xpurt {
namespace {

// Submissions from one mark to the next, and microseconds between two checks of a mark:
// a check takes the driver about as long as a decision.
constexpr int kBetweenMarks = 16;
constexpr double kBetweenLooksUs = 50;

// A mark whose work has not ended is late after this multiple of its predicted time.
constexpr double kLateRatio = 2;
constexpr double kLateUs = 200;

// Leaked: see Note [Leaked on purpose].
std::vector<double>& times_of_calls() {
  static auto* const leaked = new std::vector<double>;
  return *leaked;
}

}  // namespace

// Leaked: see Note [Leaked on purpose].
Mutex& scheduler_mutex() {
  static auto* const leaked = new Mutex(Rank::scheduler);
  return *leaked;
}

void pretend_times(std::vector<double> us) {
  std::lock_guard<Mutex> lock(scheduler_mutex());
  stop_clock(us.empty() ? std::nullopt : std::optional(now_us()));
  times_of_calls() = std::move(us);
}

void pass_time_of(size_t candidate) {
  std::lock_guard<Mutex> lock(scheduler_mutex());
  const std::vector<double>& us = times_of_calls();
  if (C10_UNLIKELY(candidate < us.size())) stop_clock(now_us() + us[candidate]);
}

uint64_t scheduler_version() noexcept {
  return device_costs_version() + exclusions() + (placement_epoch() << 32);
}

StreamClock& clock_of(const Stream& stream) {
  using Clocks = std::unordered_map<const Stream*, std::unique_ptr<StreamClock>>;
  static auto* const clocks = new Clocks;  // leaked, as above
  std::unique_ptr<StreamClock>& found = (*clocks)[&stream];
  const uint64_t version = scheduler_version();
  // A stream of another mapping may have had this address.
  if (!found || found->version != version) {
    found = std::make_unique<StreamClock>(stream.ordinal().devices.size());
    found->version = version;
  }
  return *found;
}

void StreamClock::catch_up(const Stream& stream, double now) {
  if (stream.was_waited_for()) {
    const bool late = ended_late();
    for (size_t position = 0; position < marks.size(); ++position) {
      const bool is_late = late && backlog.free_us(position, 0) > 0;
      marks[position] = {};
      marks[position].is_late = is_late;
    }
    backlog.clear();
    begun_us = 0;
    return;
  }
  for (size_t position = 0; position < marks.size(); ++position) {
    Mark& mark = marks[position];
    if (!mark.done.has_value() || now < mark.next_look_us) continue;
    const bool ended = is_over(*mark.done);
    backlog.correct(position, mark.end_us, now, ended);
    mark.next_look_us = now + kBetweenLooksUs;
    if (ended) {
      mark.done.reset();
    } else {
      mark.end_us = std::max(mark.end_us, now);
      const double took_us = now - mark.booked_us;
      if (took_us > kLateRatio * mark.predicted_us + kLateUs) {
        mark.is_late = true;
        mark.predicted_us = HUGE_VAL;  // it is late once
      }
    }
  }
}

bool StreamClock::ended_late() const {
  if (begun_us <= 0) return false;
  double predicted = begun_us;
  for (size_t position = 0; position < marks.size(); ++position) {
    predicted = std::max(predicted, backlog.free_us(position, 0));
  }
  // A wait that ended before this work began has no part in it.
  const double late_us = blocked_until_us() - predicted;
  return late_us > (kLateRatio - 1) * (predicted - begun_us) + kLateUs;
}

void StreamClock::book(size_t position, double end_us, double now) {
  if (begun_us <= 0) begun_us = now;
  backlog.book(position, end_us);
  Mark& mark = marks[position];
  if (mark.done.has_value() || ++mark.booked < kBetweenMarks) return;
  mark.wanted = true;
  mark.booked = 0;
  mark.end_us = end_us;
  mark.booked_us = now;
  mark.predicted_us = end_us - now;
}

}  // namespace xpurt

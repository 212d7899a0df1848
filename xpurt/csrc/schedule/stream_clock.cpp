#include "schedule/stream_clock.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <unordered_map>

#include "device/device_failure.h"
#include "device/event_status.h"

namespace xpurt {
namespace {

// Submissions from one mark to the next, and microseconds between two checks of a mark:
// a check takes the driver about as long as a decision.
constexpr int kBetweenMarks = 16;
constexpr double kBetweenLooksUs = 50;

std::atomic<uint64_t> changes{0};

}  // namespace

// Leaked: see Note [Leaked on purpose].
Mutex& scheduler_mutex() {
  static auto* const leaked = new Mutex(Rank::scheduler);
  return *leaked;
}

double now_us() noexcept {
  return std::chrono::duration<double, std::micro>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

uint64_t scheduler_version() noexcept {
  return changes.load(std::memory_order_acquire) + exclusions() +
         (placement_epoch() << 32);
}

void change_scheduler() noexcept {
  ++changes;
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
    backlog.clear();
    for (Mark& mark : marks) mark = {};
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
    }
  }
}

void StreamClock::book(size_t position, double end_us) {
  backlog.book(position, end_us);
  Mark& mark = marks[position];
  if (mark.done.has_value() || ++mark.booked < kBetweenMarks) return;
  mark.wanted = true;
  mark.booked = 0;
  mark.end_us = end_us;
}

}  // namespace xpurt

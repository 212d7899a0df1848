// The predicted clocks of streams, and the mutex that guards them.
#pragma once

#include <optional>
#include <vector>

#include "host/clock.h"
#include "host/mutex.h"
#include "schedule/dependences.h"
#include "schedule/planning/backlog.h"
#include "schedule/planning/online_policy.h"
#include "stream/stream.h"

namespace xpurt {

// Guards clocks and learned costs. Code that holds it never waits for a device or takes
// the GIL.
Mutex& scheduler_mutex();

// For tests: the clock stands, and goes on by `us[candidate]` with each timed call that
// is not divided. Empty: it runs.
void pretend_times(std::vector<double> us);
// A timed call of the candidate has ended.
void pass_time_of(size_t candidate);

// The clock of one stream. Under the mutex.
struct StreamClock {
  explicit StreamClock(size_t devices)
      : backlog(devices), policy(devices), marks(devices) {}

  // The one submission per queue whose end is checked: see Note [Predicted clocks].
  struct Mark {
    bool wanted = false;
    double end_us = 0;  // predicted
    std::optional<sycl::event> done;
    double next_look_us = 0;
    int booked = 0;           // submissions since the last mark
    double booked_us = 0;     // when it was booked
    double predicted_us = 0;  // from then to the end
    bool is_late = false;     // a sign that the device is slow: see Note [Slowdown]
  };

  // Corrects the clocks: a stream with nothing pending, marked work that has ended.
  void catch_up(const Stream& stream, double now);

  // Records that work on the device at `position` is about to be submitted.
  void book(size_t position, double end_us, double now);

  // Whether the host has just waited much longer than predicted for the work that was
  // pending.
  bool ended_late() const;

  Backlog backlog;
  OnlinePolicy policy;      // its first device is home
  Dependences dependences;  // among its long ops
  std::vector<Mark> marks;
  double begun_us = 0;  // when the first of the pending work was booked; 0: none is
  uint64_t version = 0;
};
StreamClock& clock_of(const Stream& stream);

// A number that changes with costs, devices and the placement. Decisions made under
// another number are invalid.
uint64_t scheduler_version() noexcept;

}  // namespace xpurt

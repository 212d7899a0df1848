#include "host/recording_now.h"

#include <time.h>

namespace xpurt {

std::atomic<bool> work_is_recorded{false};

namespace {
thread_local int64_t last_wait_ended_ns = 0;
}  // namespace

int64_t host_now_ns() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return now.tv_sec * int64_t{1'000'000'000} + now.tv_nsec;
}

void record_wait_ended() {
  last_wait_ended_ns = host_now_ns();
}

int64_t waited_until_ns() {
  return last_wait_ended_ns;
}

}  // namespace xpurt

#include "schedule/best_alone.h"

#include <algorithm>
#include <array>
#include <atomic>

#include "device/device_counts.h"
#include "host/blocked_wait.h"
#include "host/host_waits.h"
#include "schedule/cached_choice.h"
#include "schedule/planning/baseline.h"
#include "schedule/stream_clock.h"

namespace xpurt {
namespace {

// Of one ordinal. The word is read without a lock.
struct Held {
  // The version of the devices, whether it is settled, and the position + 1.
  std::atomic<uint64_t> word{0};
  // Under the scheduler's mutex.
  Baseline baseline;
  uint64_t version = 0;
  size_t best = 0;
  uint64_t waits = 0;      // of the host, until the last long op returned
  double returned_us = 0;  // when that returned
  double idle_us = 0;      // all time left out of the comparison
};

constexpr int kPositionBits = 8;
constexpr uint64_t kPositions = (1u << kPositionBits) - 1;
constexpr uint64_t kSettled = kPositions + 1;
constexpr int kVersionAt = kPositionBits + 1;

// By the home device: ordinals with the same one have the same devices.
Held* held_of(const Ordinal& devices) {
  static auto* const leaked = new std::array<Held, kCountedDevices>;
  const int id = devices.home_device().id;
  return id < kCountedDevices ? &(*leaked)[id] : nullptr;
}

// The same, if it is of the devices as they are; else nullptr.
const Held* current_held(const Ordinal& devices) {
  const Held* held = held_of(devices);
  return held != nullptr && held->version == scheduler_version() ? held : nullptr;
}

void set_held(Held& held, std::optional<size_t> position, bool is_settled) {
  const uint64_t low =
      position.has_value() ? (*position + 1) | (is_settled ? kSettled : 0) : 0;
  const uint64_t word = scheduler_version() << kVersionAt | low;
  if (held.word.exchange(word) != word) change_choices();
}

// What is below the version; 0 if the devices have changed, or all run the work.
uint64_t held_word(const Ordinal& devices) noexcept {
  if (devices.devices.size() == 1) return 0;
  const Held* held = held_of(devices);
  if (held == nullptr) return 0;
  const uint64_t word = held->word.load(std::memory_order_relaxed);
  return word >> kVersionAt == scheduler_version() ? word & (kSettled | kPositions) : 0;
}

// For how long the program has given no work to the devices, since it waited for them.
double idle_us(const Held& held, const Stream& stream, double now) {
  const bool waited = held.waits != host_waits.load(std::memory_order_relaxed);
  if (!waited || !stream.idle() || held.returned_us <= 0) return 0;
  return std::max(now - std::max(held.returned_us, blocked_until_us()), 0.0);
}

}  // namespace

std::optional<size_t> held_alone(const Ordinal& devices) noexcept {
  const uint64_t position = held_word(devices) & kPositions;
  return position == 0 ? std::nullopt : std::optional<size_t>(position - 1);
}

bool is_settled_alone(const Ordinal& devices) noexcept {
  return (held_word(devices) & kSettled) != 0;
}

bool is_comparing(const Ordinal& devices) {
  const Held* held = current_held(devices);
  return held != nullptr && held->baseline.is_comparing();
}

bool is_timing_program(const Ordinal& devices) {
  const Held* held = current_held(devices);
  return held != nullptr && held->baseline.is_measuring();
}

size_t baseline_position(const Ordinal& devices, size_t best) {
  const Held* held = current_held(devices);
  const bool in_use =
      held != nullptr && (held->baseline.is_alone() || held->baseline.is_comparing());
  return in_use ? held->best : best;
}

void compare_with_baseline(const Stream& stream, size_t best, const LongOp& op) {
  Held* held = held_of(stream.ordinal());
  if (held == nullptr) return;
  Baseline& baseline = held->baseline;
  if (const uint64_t version = scheduler_version(); held->version != version) {
    if (baseline.is_alone()) set_held(*held, std::nullopt, false);
    baseline = {};
    held->version = version;
    held->idle_us = 0;
  }
  const bool compared = baseline.is_comparing();
  const bool is_settled = baseline.is_alone() && !compared;
  if (!is_settled) held->idle_us += idle_us(*held, stream, op.now_us);
  const bool changes =
      baseline.add(op.kind, op.alone_us, op.elsewhere, op.now_us - held->idle_us);
  if (!compared && baseline.is_comparing()) held->best = best;
  if (!changes && baseline.is_comparing() == compared) return;
  set_held(*held, baseline.is_alone() ? std::optional(held->best) : std::nullopt,
           !baseline.is_comparing());
}

void record_return(const Ordinal& devices, double now) {
  Held* held = held_of(devices);
  if (held == nullptr) return;
  held->waits = host_waits.load(std::memory_order_relaxed);  // not those of the op
  held->returned_us = now;
}

double left_out_us(const Ordinal& devices) {
  std::lock_guard<Mutex> lock(scheduler_mutex());
  const Held* held = held_of(devices);
  return held == nullptr ? 0 : held->idle_us;
}

void hold_alone(const Ordinal& devices, std::optional<size_t> position) {
  if (Held* held = held_of(devices)) set_held(*held, position, true);
}

}  // namespace xpurt

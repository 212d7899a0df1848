#include "schedule/best_alone.h"

#include <array>
#include <atomic>

#include "device/device_counts.h"
#include "schedule/cached_choice.h"
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
};

constexpr int kPositionBits = 8;
constexpr uint64_t kPositions = (1u << kPositionBits) - 1;
constexpr uint64_t kSettled = kPositions + 1;
constexpr int kVersionAt = kPositionBits + 1;

// By the home device: no two ordinals have the same one.
Held* held_of(const Ordinal& devices) {
  static auto* const leaked = new std::array<Held, kCountedDevices>;
  const int id = devices.home_device().id;
  return id < kCountedDevices ? &(*leaked)[id] : nullptr;
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

}  // namespace

std::optional<size_t> held_alone(const Ordinal& devices) noexcept {
  const uint64_t position = held_word(devices) & kPositions;
  return position == 0 ? std::nullopt : std::optional<size_t>(position - 1);
}

bool is_settled_alone(const Ordinal& devices) noexcept {
  return (held_word(devices) & kSettled) != 0;
}

void compare_with_baseline(const Ordinal& devices, size_t best, uint64_t kind,
                           double alone_us, bool elsewhere, double now) {
  Held* held = held_of(devices);
  if (held == nullptr) return;
  const uint64_t version = scheduler_version();
  // Another best device is another baseline.
  if (held->version != version || held->best != best) {
    if (held->baseline.is_alone()) set_held(*held, std::nullopt, false);
    held->baseline = {};
    held->version = version;
    held->best = best;
  }
  Baseline& baseline = held->baseline;
  const bool compared = baseline.is_comparing();
  if (!baseline.add(kind, alone_us, elsewhere, now) &&
      baseline.is_comparing() == compared) {
    return;
  }
  set_held(*held, baseline.is_alone() ? std::optional(best) : std::nullopt,
           !baseline.is_comparing());
}

void hold_alone(const Ordinal& devices, std::optional<size_t> position) {
  if (Held* held = held_of(devices)) set_held(*held, position, true);
}

}  // namespace xpurt

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
  std::atomic<uint64_t> word{0};  // the version of the devices, and the position + 1
  // Under the scheduler's mutex.
  Baseline baseline;
  uint64_t version = 0;
  size_t best = 0;
};

constexpr int kPositionBits = 8;

// By the home device: no two ordinals have the same one.
Held* held_of(const Ordinal& devices) {
  static auto* const leaked = new std::array<Held, kCountedDevices>;
  const int id = devices.home_device().id;
  return id < kCountedDevices ? &(*leaked)[id] : nullptr;
}

void set_held(Held& held, std::optional<size_t> position) {
  const uint64_t low = position.has_value() ? *position + 1 : 0;
  held.word.store(scheduler_version() << kPositionBits | low);
  change_choices();
}

}  // namespace

std::optional<size_t> held_alone(const Ordinal& devices) noexcept {
  if (devices.devices.size() == 1) return std::nullopt;
  const Held* held = held_of(devices);
  const uint64_t word =
      held == nullptr ? 0 : held->word.load(std::memory_order_relaxed);
  const uint64_t low = word & ((1u << kPositionBits) - 1);
  if (low == 0 || word != (scheduler_version() << kPositionBits | low)) {
    return std::nullopt;
  }
  return low - 1;
}

void compare_with_baseline(const Ordinal& devices, size_t best, uint64_t kind,
                           double alone_us, bool elsewhere, double now) {
  Held* held = held_of(devices);
  if (held == nullptr) return;
  const uint64_t version = scheduler_version();
  // Another best device is another baseline.
  if (held->version != version || held->best != best) {
    if (held->baseline.is_alone()) set_held(*held, std::nullopt);
    held->baseline = {};
    held->version = version;
    held->best = best;
  }
  if (!held->baseline.add(kind, alone_us, elsewhere, now)) return;
  set_held(*held, held->baseline.is_alone() ? std::optional(best) : std::nullopt);
}

void hold_alone(const Ordinal& devices, std::optional<size_t> position) {
  if (Held* held = held_of(devices)) set_held(*held, position);
}

}  // namespace xpurt

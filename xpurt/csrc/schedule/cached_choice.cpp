#include "schedule/cached_choice.h"

#include "device/device.h"
#include "device/device_failure.h"
#include "op/cost_table.h"
#include "op/op_record.h"
#include "schedule/scheduler.h"

namespace xpurt {
namespace {

// Calls until the next attempt at a timed sample, after one that was not possible.
constexpr uint32_t kPostponed = 64;

constexpr int kVersionBits = 64 - kHolderBits - kCandidateBits;
constexpr uint64_t kVersionMask = (uint64_t{1} << kVersionBits) - 1;

std::atomic<uint64_t> changes{0};

}  // namespace

// Sums of counters that only grow: a sum differs if any of them has changed.
uint64_t costs_version() noexcept {
  return cost_table_version() + device_costs_version() + placement_epoch();
}

uint64_t choice_version() noexcept {
  return (costs_version() + exclusions() + changes.load(std::memory_order_acquire)) &
         kVersionMask;
}

void change_choices() noexcept {
  ++changes;
}

CachedChoice cached_choice(const OpRecord& record, c10::DeviceIndex index,
                           size_t devices, const CallSignature& signature,
                           int64_t elements, uint64_t holders) {
  StatisticsBucket* bucket = find_bucket(record, index, devices, signature, elements);
  if (bucket == nullptr) return {};
  const LearningMode mode = learning_mode();
  const uint64_t word =
      bucket->cached[static_cast<size_t>(mode)].load(std::memory_order_relaxed);
  const int candidate = chosen_in(word);
  if (candidate < 0 || word != choice_word(choice_version(), holders, candidate)) {
    return {};
  }
  if (mode != LearningMode::learns) return {candidate, nullptr};
  if (bucket->calls_left.load(std::memory_order_relaxed) == 0) return {};
  return {candidate, &bucket->calls_left};
}

QuickChoice quick_choice_on_one(const OpRecord& record, c10::DeviceIndex index,
                                const CallSignature& signature, int64_t elements) {
  const CachedChoice found = cached_choice(record, index, 1, signature, elements, 1);
  if (found.candidate < 0) return {};
  return {found.candidate == 0 ? QuickTier::kernel : QuickTier::native,
          found.calls_left};
}

bool is_cached_native(const OpRecord& record, c10::DeviceIndex index, size_t devices,
                      const CallSignature& signature) {
  const int64_t elements = signature.elements();
  StatisticsBucket* bucket = find_bucket(record, index, devices, signature, elements);
  if (bucket == nullptr) return false;
  const LearningMode mode = learning_mode();
  const uint64_t word =
      bucket->cached[static_cast<size_t>(mode)].load(std::memory_order_relaxed);
  // Which other devices hold the operands does not matter to work at home.
  if (chosen_in(word) != static_cast<int>(devices)) return false;
  if (word >> (kHolderBits + kCandidateBits) != choice_version()) return false;
  if (mode != LearningMode::learns) return true;
  const QuickChoice quick{QuickTier::native, &bucket->calls_left};
  if (bucket->calls_left.load(std::memory_order_relaxed) == 0) return false;
  quick.take();
  return true;
}

void postpone_sample(const OpRecord& record, c10::DeviceIndex index,
                     const CallSignature& signature, int64_t elements) {
  StatisticsBucket* bucket = find_bucket(record, index, 1, signature, elements);
  if (bucket == nullptr || learning_mode() != LearningMode::learns) return;
  const uint64_t word = bucket->cached[0].load(std::memory_order_relaxed);
  if (chosen_in(word) < 0) return;
  bucket->calls_left.store(kPostponed, std::memory_order_relaxed);
}

}  // namespace xpurt

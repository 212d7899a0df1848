#include "schedule/device_statistics.h"

#include <algorithm>
#include <functional>

#include "device/device.h"
#include "op/op_record.h"
#include "schedule/best_alone.h"
#include "schedule/cached_choice.h"
#include "schedule/stream_clock.h"

namespace xpurt {
namespace {

// How many size classes away a measured neighbour may be.
constexpr int kNearbySizes = 3;

DeviceStatistics* find_statistics(const OpRecord& record, c10::DeviceIndex index,
                                  size_t devices) {
  DeviceStatistics* found = record.device_statistics.load(std::memory_order_acquire);
  while (found != nullptr && (found->ordinal != index || found->devices != devices)) {
    found = found->next;
  }
  return found;
}

// The number of candidates stays: a call that was decided before may still read its
// own.
void forget(StatisticsBucket& bucket) {
  bucket.forget_choices();
  bucket.calls_left.store(0, std::memory_order_relaxed);
  bucket.candidates.assign(bucket.candidates.size(), {});
  bucket.of_other_arm.clear();
  bucket.is_alone = false;
  bucket.in_use = bucket.candidates.empty() ? 0 : bucket.candidates.size() - 1;
  bucket.interval = bucket.calls = 0;
  bucket.spent_us = bucket.regret_us = bucket.reused_us = bucket.reused_gain_us = 0;
  bucket.discarded = 0;
  bucket.is_long = false;
  bucket.copies = {};
  bucket.lost_division = {};
}

void forget(DeviceStatistics& statistics) {
  for (auto& slot : statistics.sizes) {
    StatisticsBySize* sizes = slot.load(std::memory_order_acquire);
    if (sizes == nullptr) continue;
    sizes->built = 0;
    for (StatisticsBucket& bucket : sizes->buckets) forget(bucket);
  }
}

// The factor of a candidate that the bucket, or its nearest measured neighbour, has
// learned; nullptr if no bucket in reach has.
const LearnedCost* nearest(const FoundBucket& found, size_t candidate) {
  const auto known = [&](int size) -> const LearnedCost* {
    if (size < 0 || size >= static_cast<int>(kSizeClasses)) return nullptr;
    const StatisticsBucket& bucket = found.sizes.buckets[size];
    if (bucket.candidates.empty() || !bucket.candidates[candidate].factor.is_known())
      return nullptr;
    return &bucket.candidates[candidate].factor;
  };
  const int here = static_cast<int>(found.size);
  for (int away = 0; away <= kNearbySizes; ++away) {
    const LearnedCost* factor = known(here - away);
    if (factor == nullptr) factor = known(here + away);
    if (factor != nullptr) return factor;
  }
  return nullptr;
}

}  // namespace

void StatisticsBucket::forget_choices() {
  for (auto& each : cached) each.store(0, std::memory_order_relaxed);
}

void StatisticsBucket::change_arm() {
  is_alone = !is_alone;
  if (of_other_arm.empty()) {
    of_other_arm = candidates;
    for (CandidateStatistics& each : candidates) {
      each = {.factor = each.factor.as_guess(),
              .of_shards = each.of_shards.as_guess(),
              .not_before_us = each.not_before_us};
    }
    return;
  }
  // The number of candidates stays, and so do their addresses: see forget().
  std::ranges::swap_ranges(candidates, of_other_arm);
}

StatisticsBucket* find_bucket(const OpRecord& record, c10::DeviceIndex index,
                              size_t devices, const CallSignature& signature,
                              int64_t elements) {
  DeviceStatistics* statistics = find_statistics(record, index, devices);
  if (statistics == nullptr) return nullptr;
  StatisticsBySize* sizes =
      statistics->sizes[type_layout_of(signature)].load(std::memory_order_acquire);
  return sizes == nullptr ? nullptr : &sizes->buckets[size_class_of(elements)];
}

// Nothing is ever removed, since the hot path reads without a lock. The list is
// bounded: one entry for each ordinal and number of devices.
FoundBucket find_or_make_bucket(OpRecord& record, c10::DeviceIndex index,
                                const CallSignature& signature, int64_t elements) {
  const Ordinal& placed = ordinal(index);
  const size_t devices = placed.devices.size();
  const uint64_t version = costs_version();
  DeviceStatistics* statistics = find_statistics(record, index, devices);
  if (statistics == nullptr) {
    statistics = new DeviceStatistics;
    statistics->ordinal = index;
    statistics->devices = devices;
    statistics->version = version;
    statistics->next = record.device_statistics.load(std::memory_order_acquire);
    record.device_statistics.store(statistics, std::memory_order_release);
  } else if (statistics->version != version) {
    forget(*statistics);
    statistics->version = version;
  }
  auto& slot = statistics->sizes[type_layout_of(signature)];
  StatisticsBySize* sizes = slot.load(std::memory_order_acquire);
  if (sizes == nullptr) {
    sizes = new StatisticsBySize;
    slot.store(sizes, std::memory_order_release);
  }
  const FoundBucket found{*sizes, size_class_of(elements)};
  if (found.bucket().candidates.empty()) {
    found.bucket().candidates.resize(devices + 1);
    found.bucket().in_use = devices;
  }
  if (found.bucket().is_alone != held_alone(placed).has_value()) {
    found.bucket().change_arm();
  }
  return found;
}

bool is_measured(const FoundBucket& found, size_t candidate) {
  return nearest(found, candidate) != nullptr;
}

double learned_factor(const FoundBucket& found, size_t candidate, size_t like) {
  if (const LearnedCost* own = nearest(found, candidate)) return own->estimate(1);
  const LearnedCost* other = like != candidate ? nearest(found, like) : nullptr;
  const double factor = other != nullptr ? other->estimate(1) : 1;
  return found.bucket().candidates[candidate].factor.bounded(factor);
}

void forget_statistics(OpRecord& record) {
  std::lock_guard<Mutex> lock(scheduler_mutex());
  DeviceStatistics* each = record.device_statistics.load(std::memory_order_acquire);
  for (; each != nullptr; each = each->next) forget(*each);
}

void forget_statistics() {
  for_each_op_record([](OpRecord& record) { forget_statistics(record); });
}

std::vector<LearnedCalls> learned_calls() {
  std::vector<LearnedCalls> found;
  for_each_op_record([&](OpRecord& record) {
    std::lock_guard<Mutex> lock(scheduler_mutex());
    DeviceStatistics* each = record.device_statistics.load(std::memory_order_acquire);
    for (; each != nullptr; each = each->next) {
      if (each->version != costs_version()) continue;
      for (size_t i = 0; i < each->sizes.size(); ++i) {
        const StatisticsBySize* sizes = each->sizes[i].load(std::memory_order_acquire);
        if (sizes == nullptr) continue;
        for (size_t k = 0; k < sizes->buckets.size(); ++k) {
          const StatisticsBucket& bucket = sizes->buckets[k];
          LearnedCalls row{record.name,
                           each->ordinal,
                           letter_at(i),
                           static_cast<OperandLayout>(i % kLayouts),
                           static_cast<int>(k) + kMinSizeLog2,
                           bucket.calls_left.load(std::memory_order_relaxed),
                           bucket.in_use,
                           {},
                           {}};
          for (const CandidateStatistics& candidate : bucket.candidates) {
            row.timed.push_back(candidate.factor.count());
            row.factors.push_back(candidate.factor.estimate(1));
          }
          // The candidates of a bucket outlive what it learned: see forget().
          if (std::ranges::any_of(row.timed, std::identity{}))
            found.push_back(std::move(row));
        }
      }
    }
  });
  return found;
}

}  // namespace xpurt

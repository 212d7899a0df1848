#include "schedule/device_statistics.h"

#include "device/device.h"
#include "op/op_record.h"

namespace xpurt {
namespace {

// How many size classes away a measured neighbour may be.
constexpr int kNearbySizes = 3;

DeviceStatistics* find_statistics(const OpRecord& record, c10::DeviceIndex index) {
  DeviceStatistics* found = record.device_statistics.load(std::memory_order_acquire);
  const uint64_t epoch = placement_epoch();
  while (found != nullptr && (found->ordinal != index ||
                              found->epoch.load(std::memory_order_acquire) != epoch)) {
    found = found->next;
  }
  return found;
}

// The number of candidates stays: a call that was decided before may still read its
// own.
void forget(StatisticsBucket& bucket) {
  bucket.cached.store(0, std::memory_order_relaxed);
  bucket.calls_left.store(0, std::memory_order_relaxed);
  bucket.candidates.assign(bucket.candidates.size(), {});
  bucket.interval = bucket.calls = 0;
  bucket.spent_us = bucket.regret_us = 0;
  bucket.discarded = 0;
  bucket.copies = {};
}

// Reuses the statistics of an earlier placement, cleared; nullptr if there are none
// with as many devices.
DeviceStatistics* renew_statistics(const OpRecord& record, c10::DeviceIndex index,
                                   size_t devices) {
  DeviceStatistics* found = record.device_statistics.load(std::memory_order_acquire);
  while (found != nullptr && (found->ordinal != index || found->devices != devices)) {
    found = found->next;
  }
  if (found == nullptr) return nullptr;
  for (auto& slot : found->sizes) {
    StatisticsBySize* sizes = slot.load(std::memory_order_acquire);
    if (sizes == nullptr) continue;
    for (StatisticsBucket& bucket : sizes->buckets) forget(bucket);
  }
  found->epoch.store(placement_epoch(), std::memory_order_release);
  return found;
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

StatisticsBucket* find_bucket(const OpRecord& record, c10::DeviceIndex index,
                              const CallSignature& signature, int64_t elements) {
  DeviceStatistics* statistics = find_statistics(record, index);
  if (statistics == nullptr) return nullptr;
  StatisticsBySize* sizes =
      statistics->sizes[type_layout_of(signature)].load(std::memory_order_acquire);
  return sizes == nullptr ? nullptr : &sizes->buckets[size_class_of(elements)];
}

// Nothing is ever removed, since the hot path reads without a lock. The list is
// bounded: one entry for each ordinal and number of devices.
FoundBucket find_or_make_bucket(OpRecord& record, c10::DeviceIndex index,
                                const CallSignature& signature, int64_t elements) {
  DeviceStatistics* statistics = find_statistics(record, index);
  const size_t devices = ordinal(index).devices.size();
  if (statistics == nullptr) statistics = renew_statistics(record, index, devices);
  if (statistics == nullptr) {
    statistics = new DeviceStatistics;
    statistics->ordinal = index;
    statistics->epoch = placement_epoch();
    statistics->devices = devices;
    statistics->next = record.device_statistics.load(std::memory_order_acquire);
    record.device_statistics.store(statistics, std::memory_order_release);
  }
  auto& slot = statistics->sizes[type_layout_of(signature)];
  StatisticsBySize* sizes = slot.load(std::memory_order_acquire);
  if (sizes == nullptr) {
    sizes = new StatisticsBySize;
    slot.store(sizes, std::memory_order_release);
  }
  const FoundBucket found{*sizes, size_class_of(elements)};
  if (found.bucket().candidates.empty())
    found.bucket().candidates.resize(statistics->devices + 1);
  return found;
}

bool is_measured(const FoundBucket& found, size_t candidate) {
  return nearest(found, candidate) != nullptr;
}

double learned_factor(const FoundBucket& found, size_t candidate) {
  const LearnedCost* factor = nearest(found, candidate);
  return factor != nullptr ? factor->estimate(1) : 1;
}

}  // namespace xpurt

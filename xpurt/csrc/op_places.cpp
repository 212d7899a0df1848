#include "op_places.h"

#include "device.h"
#include "op_record.h"

namespace xpurt {
namespace {

// How far in size a neighbour that knows may be.
constexpr int kNeighbours = 3;

OpPlaces* find_places(const OpRecord& record, c10::DeviceIndex index) {
  OpPlaces* found = record.places.load(std::memory_order_acquire);
  const uint64_t epoch = placement_epoch();
  while (found != nullptr && (found->ordinal != index ||
                              found->epoch.load(std::memory_order_acquire) != epoch)) {
    found = found->next;
  }
  return found;
}

// The ways stay as many as they were: a call that was placed before may look at its
// own.
void forget(PlaceBucket& bucket) {
  bucket.cached.store(0, std::memory_order_relaxed);
  bucket.calls_left.store(0, std::memory_order_relaxed);
  bucket.ways.assign(bucket.ways.size(), {});
  bucket.rest = bucket.calls = 0;
  bucket.spent_us = bucket.missed_us = 0;
  bucket.excused = 0;
}

// That of an earlier placement, which has forgotten; nullptr if there is none.
OpPlaces* renew_places(const OpRecord& record, c10::DeviceIndex index, size_t devices) {
  OpPlaces* found = record.places.load(std::memory_order_acquire);
  while (found != nullptr && (found->ordinal != index || found->devices != devices)) {
    found = found->next;
  }
  if (found == nullptr) return nullptr;
  for (auto& slot : found->sizes) {
    PlaceSizes* sizes = slot.load(std::memory_order_acquire);
    if (sizes == nullptr) continue;
    for (PlaceBucket& bucket : sizes->buckets) forget(bucket);
  }
  found->epoch.store(placement_epoch(), std::memory_order_release);
  return found;
}

// What the bucket, or its nearest neighbour that knows, has learned of a way; nullptr
// where none does.
const LearnedCost* nearest(const FoundBucket& found, size_t way) {
  const auto known = [&](int size) -> const LearnedCost* {
    if (size < 0 || size >= static_cast<int>(kSizePlaces)) return nullptr;
    const PlaceBucket& bucket = found.sizes.buckets[size];
    if (bucket.ways.empty() || !bucket.ways[way].factor.is_known()) return nullptr;
    return &bucket.ways[way].factor;
  };
  const int here = static_cast<int>(found.size);
  for (int away = 0; away <= kNeighbours; ++away) {
    const LearnedCost* factor = known(here - away);
    if (factor == nullptr) factor = known(here + away);
    if (factor != nullptr) return factor;
  }
  return nullptr;
}

}  // namespace

PlaceBucket* find_bucket(const OpRecord& record, c10::DeviceIndex index,
                         const CallLook& look, int64_t elements) {
  OpPlaces* places = find_places(record, index);
  if (places == nullptr) return nullptr;
  PlaceSizes* sizes = places->sizes[sizes_place(look)].load(std::memory_order_acquire);
  return sizes == nullptr ? nullptr : &sizes->buckets[size_place(elements)];
}

// Nothing is ever taken away, since the hot path reads without a lock, and no more is
// ever added than one for each ordinal and number of devices.
FoundBucket find_or_make_bucket(OpRecord& record, c10::DeviceIndex index,
                                const CallLook& look, int64_t elements) {
  OpPlaces* places = find_places(record, index);
  const size_t devices = ordinal(index).devices.size();
  if (places == nullptr) places = renew_places(record, index, devices);
  if (places == nullptr) {
    places = new OpPlaces;
    places->ordinal = index;
    places->epoch = placement_epoch();
    places->devices = devices;
    places->next = record.places.load(std::memory_order_acquire);
    record.places.store(places, std::memory_order_release);
  }
  auto& slot = places->sizes[sizes_place(look)];
  PlaceSizes* sizes = slot.load(std::memory_order_acquire);
  if (sizes == nullptr) {
    sizes = new PlaceSizes;
    slot.store(sizes, std::memory_order_release);
  }
  const FoundBucket found{*sizes, size_place(elements)};
  if (found.bucket().ways.empty()) found.bucket().ways.resize(places->devices + 1);
  return found;
}

bool is_proven(const FoundBucket& found, size_t way) {
  return nearest(found, way) != nullptr;
}

double learned_factor(const FoundBucket& found, size_t way) {
  const LearnedCost* factor = nearest(found, way);
  return factor != nullptr ? factor->believed(1) : 1;
}

}  // namespace xpurt

// The copies that a device without room evicts.
#include <algorithm>
#include <atomic>

#include "memory/replica/table.h"
#include "memory/replica/transfers.h"

namespace xpurt::replicas {
namespace {

struct Evictable {
  Copies* copies;
  size_t position;
  bool is_elsewhere;  // all of its valid bytes are valid on another device, too
  CopyValue value;
};

std::atomic<bool> short_of_memory{false};

bool is_elsewhere(const Copies& copies, size_t position) {
  const auto& all = copies.by_position;
  return std::ranges::all_of(all[position].valid.inside(copies.whole),
                             [&](const Interval& part) {
                               for (size_t p = 0; p < all.size(); ++p) {
                                 if (p != position && all[p].valid.covers(part))
                                   return true;
                               }
                               return false;
                             });
}

CopyValue value_of(const Copies& copies, size_t position, bool is_elsewhere) {
  return {copies.by_position[position].saved, copies.uses, table().ops, !is_elsewhere};
}

// Calls `use(copies, position)` for each copy on the device that the current work does
// not need.
template <class Use>
void for_each_unneeded(const PhysicalDevice& device, const Ordinal& devices, Use use) {
  for (auto& [home, copies] : table().copies) {
    if (copies.needed || &copies.on != &devices) continue;
    for (size_t p = 0; p < copies.by_position.size(); ++p) {
      const bool is_there = p != devices.home && devices.devices[p] == &device &&
                            copies.by_position[p].memory.pointer != nullptr;
      if (is_there) use(copies, p);
    }
  }
}

}  // namespace

bool is_short_of_memory() {
  return short_of_memory.load(std::memory_order_relaxed);
}

bool would_stay(const Copies& copies, size_t position) {
  const PhysicalDevice& device = *copies.on.devices[position];
  const size_t bytes = copies.whole.size();
  if (pool(device).may_have_room(bytes)) return true;
  const CopyValue own = value_of(copies, position, true);
  size_t lower = 0;
  for_each_unneeded(device, copies.on, [&](const Copies& other, size_t p) {
    if (value_of(other, p, is_elsewhere(other, p)).is_clearly_below(own)) {
      lower += other.by_position[p].memory.bytes;
    }
  });
  return lower >= bytes;
}

// Note [Eviction]
// ~~~~~~~~~~~~~~~
// A device without room for a copy first releases the memory that it caches for reuse.
// Then it evicts copies of other storages, those of least value first: see
// Note [Values of copies]. What is valid nowhere else is copied home before, so the
// last valid copy of a byte is never evicted. A storage that the current work needs
// stays.
bool evict(const PhysicalDevice& device, size_t bytes, Stream& stream) {
  ReplicaPool& memory = pool(device);
  if (memory.trim() > 0) return true;
  short_of_memory = true;
  std::vector<Evictable> found;
  for_each_unneeded(device, stream.ordinal(), [&](Copies& copies, size_t p) {
    const bool elsewhere = is_elsewhere(copies, p);
    found.push_back({&copies, p, elsewhere, value_of(copies, p, elsewhere)});
  });
  std::ranges::sort(
      found, [](const Evictable& a, const Evictable& b) { return a.value < b.value; });
  size_t freed = 0;
  for (const Evictable& each : found) {
    Copy& copy = each.copies->by_position[each.position];
    if (!each.is_elsewhere) {
      for (const Interval& part : copy.valid.inside(each.copies->whole)) {
        fetch(*each.copies, stream.ordinal().home, part, stream);
      }
    }
    freed += copy.memory.bytes;
    count_eviction(device, copy.memory.bytes);
    memory.give_back(std::move(copy.memory));
    copy.memory = {};
    copy.valid = {};
    if (freed >= bytes || memory.has_cached(bytes)) break;
  }
  if (!memory.has_cached(bytes)) memory.trim();
  return freed > 0;
}

}  // namespace xpurt::replicas

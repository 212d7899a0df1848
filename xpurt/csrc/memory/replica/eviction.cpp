// The copies that a device without room evicts.
#include <algorithm>

#include "memory/replica/table.h"

namespace xpurt::replicas {
namespace {

struct Evictable {
  Copies* copies;
  size_t position;
  bool is_elsewhere;  // all of its valid bytes are valid on another device, too
  uint64_t used_at;
};

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

std::vector<Evictable> candidates_on(const PhysicalDevice& device,
                                     const Ordinal& devices) {
  std::vector<Evictable> found;
  for (auto& [home, copies] : table().copies) {
    if (copies.needed || &copies.on != &devices) continue;
    for (size_t p = 0; p < copies.by_position.size(); ++p) {
      const Copy& copy = copies.by_position[p];
      if (p == devices.home || devices.devices[p] != &device || !copy.memory.pointer) {
        continue;
      }
      found.push_back({&copies, p, is_elsewhere(copies, p), copy.used_at});
    }
  }
  return found;
}

}  // namespace

// Note [Eviction]
// ~~~~~~~~~~~~~~~
// A device without room for a copy first releases the memory that it caches for reuse.
// Then it evicts copies of other storages, the least recently used first. Copies whose
// bytes are valid elsewhere come first, as they cost only a later fetch. Then come
// copies that have to be copied home before. So the last valid copy of a byte is never
// evicted. A storage that the current work needs stays.
bool evict(const PhysicalDevice& device, size_t bytes, Stream& stream) {
  ReplicaPool& memory = pool(device);
  if (memory.trim() > 0) return true;
  std::vector<Evictable> found = candidates_on(device, stream.ordinal());
  std::ranges::sort(found, [](const Evictable& a, const Evictable& b) {
    return std::pair(!a.is_elsewhere, a.used_at) <
           std::pair(!b.is_elsewhere, b.used_at);
  });
  size_t freed = 0;
  for (const Evictable& each : found) {
    Copy& copy = each.copies->by_position[each.position];
    if (!each.is_elsewhere) {
      for (const Interval& part : copy.valid.inside(each.copies->whole)) {
        fetch(*each.copies, stream.ordinal().home, part, stream);
      }
    }
    freed += copy.memory.bytes;
    memory.give_back(std::move(copy.memory));
    copy = {};
    if (freed >= bytes || memory.has_cached(bytes)) break;
  }
  if (!memory.has_cached(bytes)) memory.trim();
  return freed > 0;
}

}  // namespace xpurt::replicas

// The copies that a device without room evicts.
#include <algorithm>
#include <limits>

#include "memory/replica/table.h"
#include "memory/replica/transfers.h"

namespace xpurt::replicas {
namespace {

struct Evictable {
  Copies* copies;
  size_t position;
  bool is_elsewhere;  // all of its valid bytes are valid on another device, too
  uint64_t next_use;
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
      found.push_back(
          {&copies, p, is_elsewhere(copies, p), copy.next_use(table().uses)});
    }
  }
  return found;
}

}  // namespace

// Note [Eviction]
// ~~~~~~~~~~~~~~~
// A device without room for a copy first releases the memory that it caches for reuse.
// Then it evicts copies of other storages. Copies whose bytes are valid elsewhere come
// first, as they cost only a later fetch. Then come copies that have to be copied home
// before. So the last valid copy of a byte is never evicted. A storage that the current
// work needs stays.
//
// Among these the one goes whose next use is farthest away, the best choice where it is
// known (Belady, 1966). A program repeats itself, so the next use is expected as long
// after the last one as that was after the one before (the inter-reference gap of
// Phalke and Gopinath, 1995):
// - Of a model that is larger than the memory, the weight that was used last has the
//   farthest next use. It makes room for the next one, and the others stay *resident*
//   from call to call. If the one used longest ago went, it would go just before its
//   next use, and each call would move the whole model.
// - A copy that is overdue by as much as its gap is not used any more, and goes first.
// - Of a copy with one use, the next is expected after as long as the last is ago: the
//   one used longest ago goes.
uint64_t Copy::next_use(uint64_t now) const {
  const uint64_t ago = now - used_at;
  if (gap == 0) return now + ago;
  if (ago > 2 * gap) return std::numeric_limits<uint64_t>::max();
  return used_at + gap;
}

bool evict(const PhysicalDevice& device, size_t bytes, Stream& stream) {
  ReplicaPool& memory = pool(device);
  if (memory.trim() > 0) return true;
  std::vector<Evictable> found = candidates_on(device, stream.ordinal());
  std::ranges::sort(found, [](const Evictable& a, const Evictable& b) {
    return std::pair(a.is_elsewhere, a.next_use) >
           std::pair(b.is_elsewhere, b.next_use);
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

// Which copies there are of the storages of ordinals with several devices. For
// the files of memory/replica alone.
#pragma once

#include <memory>
#include <unordered_map>

#include "host/intervals.h"
#include "memory/deferred_frees.h"
#include "memory/replica/pool.h"
#include "memory/replica/replica.h"

namespace xpurt::replicas {

// A storage's bytes in the memory of one device.
struct Copy {
  ReplicaMemory memory;  // the home copy's is the storage's own
  Intervals valid;
  uint64_t used_at = 0;  // grows with every use of a copy
};

struct Copies {
  c10::DeviceIndex ordinal = 0;
  Interval whole;
  bool escaped = false;
  bool needed = false;  // by operands that are being resolved: not to evict
  std::vector<Copy> by_position;
  const void* home = nullptr;

  const Ordinal& devices() const { return xpurt::ordinal(ordinal); }
  Copy& at_home() { return by_position[devices().home]; }
};

struct Table {
  std::mutex mutex;
  std::unordered_map<const void*, Copies> copies;  // by home pointer
  DeferredFrees freed_homes;  // whoever gets such memory next waits for its work
  std::unordered_map<const PhysicalDevice*, std::unique_ptr<ReplicaPool>> pools;
  uint64_t uses = 0;
};

// All else is called with its mutex held.
Table& table();

// The position of the copy that the device at `position` works on.
size_t holder_of(const Ordinal& devices, size_t position);

// Whether there is anything to look up. Read without the lock.
bool is_empty();

const void* home_of(const c10::StorageImpl& storage);
bool is_ours(const c10::StorageImpl& storage);

Copies* find(const void* home);
Copies& find_or_make(const c10::StorageImpl& storage);

// Pending uses of home memory that belongs to no storage of the table.
Uses uses_before(const void* memory, size_t bytes);

// Gives the copy memory. Throws c10::OutOfMemoryError.
void ensure_memory(Copies& copies, size_t position);

// Makes a range of a copy that has memory valid, by copies that are submitted to
// `stream`.
void fetch(Copies& copies, size_t position, Interval range, Stream& stream);

void make_only_valid(Copies& copies, size_t position, Interval range);

// Makes room on a device; false if it can't. See Note [Eviction].
bool evict(const PhysicalDevice& device, size_t bytes);

ReplicaPool& pool(const PhysicalDevice& device);

}  // namespace xpurt::replicas

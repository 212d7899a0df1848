// The table of the copies of storages, for ordinals with several devices. Private to
// the files of memory/replica.
#pragma once

#include <memory>
#include <unordered_map>

#include "host/intervals.h"
#include "host/mutex.h"
#include "memory/deferred_frees.h"
#include "memory/replica/pool.h"
#include "memory/replica/replica.h"

namespace xpurt::replicas {

// A storage's bytes in the memory of one device.
struct Copy {
  ReplicaMemory memory;  // for the home copy, the storage's own memory
  Intervals valid;
  uint64_t used_at = 0;  // grows with every use of a copy; 0: never
  uint64_t gap = 0;      // between its last two uses; 0: not known

  // When it is used next, as far as is known. See Note [Eviction].
  uint64_t next_use(uint64_t now) const;
};

struct Copies {
  explicit Copies(const Ordinal& devices)
      : on(devices), by_position(devices.devices.size()) {}

  const Ordinal& on;
  Interval whole;
  bool escaped = false;
  bool needed = false;  // by operands that are being resolved: not evicted
  std::vector<Copy> by_position;
  const void* home = nullptr;

  Copy& at_home() { return by_position[on.home]; }
};

// The home memory of a storage.
struct HomeMemory {
  const void* begin = nullptr;  // of the allocation that contains the storage's bytes
  size_t bytes = 0;             // of the allocation; at least up to the storage's end
  size_t offset = 0;            // of the storage's first byte
  bool is_ours = false;         // allocated by xpurt
};

struct Table {
  Mutex mutex{Rank::replica_table};
  std::unordered_map<const void*, Copies> copies;  // by HomeMemory::begin
  DeferredFrees freed_homes;  // the next use of such memory waits for its work
  std::unordered_map<const PhysicalDevice*, std::unique_ptr<ReplicaPool>> pools;
  uint64_t uses = 0;
};

// All other functions require its mutex, except for holder_of(), is_empty() and
// home_of().
Table& table();

// The position of the copy that the device at `position` uses.
size_t holder_of(const Ordinal& devices, size_t position);

// True if no lookup is needed. Read without the lock.
bool is_empty();

// See Note [Storages inside others].
HomeMemory home_of(const c10::StorageImpl& storage);

Copies* find(const HomeMemory& home);
// For memory that xpurt allocated.
Copies& find_or_make(const HomeMemory& home, const Ordinal& devices);

// Pending uses of home memory that belongs to no storage of the table.
Uses uses_before(const void* memory, size_t bytes);

// Allocates memory for the copy, if it has none. Copies that are evicted for it are
// fetched by `stream`. Throws c10::OutOfMemoryError.
void ensure_memory(Copies& copies, size_t position, Stream& stream);

// Makes a range of a copy valid, by transfers that are submitted to `stream`. The copy
// has memory.
void fetch(Copies& copies, size_t position, Interval range, Stream& stream);

void make_only_valid(Copies& copies, size_t position, Interval range);

// Makes room on a device of the stream's ordinal. False if it cannot. See
// Note [Eviction].
bool evict(const PhysicalDevice& device, size_t bytes, Stream& stream);

ReplicaPool& pool(const PhysicalDevice& device);

}  // namespace xpurt::replicas

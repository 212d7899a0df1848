// The table of the copies of storages, for ordinals with several devices. Private to
// the files of memory/replica.
#pragma once

#include <memory>
#include <unordered_map>

#include "host/intervals.h"
#include "host/mutex.h"
#include "memory/deferred_frees.h"
#include "memory/replica/copy_value.h"
#include "memory/replica/pool.h"
#include "memory/replica/replica.h"

namespace xpurt::replicas {

// A storage's bytes in the memory of one device.
struct Copy {
  ReplicaMemory memory;  // for the home copy, the storage's own memory
  Intervals valid;
  // What ops save by it, over the time of copying it: see Note [Values of copies].
  double saved = 1;
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
  StorageUses uses;

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
  uint64_t ops = 0;  // grows with every op
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

// Whether a device had to evict a copy in this process. Read without the lock.
bool is_short_of_memory();

// Whether a copy on the device at `position` would stay there: there is room, or there
// are copies of less value.
bool would_stay(const Copies& copies, size_t position);

ReplicaPool& pool(const PhysicalDevice& device);

}  // namespace xpurt::replicas

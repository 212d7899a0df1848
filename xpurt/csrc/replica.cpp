#include "replica.h"

#include <c10/util/Exception.h>

#include <memory>
#include <mutex>
#include <unordered_map>

#include "allocator.h"
#include "replica_pool.h"

namespace xpurt {
namespace {

// Note [Home and replicas]
// ~~~~~~~~~~~~~~~~~~~~~~~~
// A tensor's data pointer is always that of its home copy. Where an ordinal has
// several devices that share no memory, the others work on replicas: whole copies of
// the storage (views share them), made at the first use, kept in a table by the home
// pointer. Each copy is valid or stale; a write leaves one valid copy. The table
// knows every access, because every kernel asks it for its pointers. Whatever gives
// a raw pointer to somebody else calls escape(): such a storage stays at home.
//
// An AUTO stream is one sequence of work, whichever of its queues a piece runs on
// (Stream::queue orders them), so that a copy needs no event of its own: it is
// submitted to the stream that needs it, after all that this stream did before.
struct Replica {
  ReplicaMemory memory;
  bool valid = false;
};

struct Copies {
  c10::DeviceIndex ordinal = 0;
  size_t bytes = 0;
  bool home_valid = true;
  bool escaped = false;
  std::vector<Replica> replicas;  // by position; the home's stays empty
};

struct Table {
  std::mutex mutex;
  std::unordered_map<const void*, Copies> copies;  // by home pointer
  std::unordered_map<const PhysicalDevice*, std::unique_ptr<ReplicaPool>> pools;
};

Table& table() {
  static Table* const leaked = new Table;
  return *leaked;
}

// Read without the lock: with no entry there is nothing to look up.
std::atomic<size_t> entries{0};

ReplicaPool& pool(const PhysicalDevice& device) {
  auto& slot = table().pools[&device];
  if (!slot) slot = std::make_unique<ReplicaPool>(device);
  return *slot;
}

const void* home_of(const c10::StorageImpl& storage) {
  return storage.data_ptr().get();
}

bool is_ours(const c10::StorageImpl& storage) {
  return storage.data_ptr().get_deleter() == device_allocator().raw_deleter();
}

Copies* find(const c10::StorageImpl& storage) {
  const auto found = table().copies.find(home_of(storage));
  return found == table().copies.end() ? nullptr : &found->second;
}

Copies& find_or_make(const c10::StorageImpl& storage) {
  static std::once_flag once;
  std::call_once(once, [] { on_free(&forget_replicas); });
  auto [found, made] = table().copies.try_emplace(home_of(storage));
  if (made) {
    ++entries;
    found->second.ordinal = storage.device().index();
    found->second.bytes = storage.nbytes();
    found->second.replicas.resize(ordinal(storage.device().index()).devices.size());
  }
  return found->second;
}

// A copy between two devices, both ends by position. Two devices that the host
// cannot read go by way of host memory.
void copy_between(const Ordinal& devices, void* to, size_t to_position,
                  const void* from, size_t from_position, size_t bytes,
                  Stream& stream) {
  const bool to_host = devices.devices[to_position]->host_accessible;
  const bool from_host = devices.devices[from_position]->host_accessible;
  if (to_host || from_host) {
    stream.queue(from_host ? to_position : from_position).memcpy(to, from, bytes);
    return;
  }
  std::vector<char> staging(bytes);
  stream.queue(from_position).memcpy(staging.data(), from, bytes).wait();
  stream.queue(to_position).memcpy(to, staging.data(), bytes).wait();
}

void fetch_home(const c10::StorageImpl& storage, Copies& copies, Stream& stream) {
  if (copies.home_valid) return;
  const Ordinal& devices = ordinal(copies.ordinal);
  for (size_t p = 0; p < copies.replicas.size(); ++p) {
    Replica& replica = copies.replicas[p];
    if (!replica.valid) continue;
    replica.memory.use(stream);
    copy_between(devices, const_cast<void*>(home_of(storage)), devices.home,
                 replica.memory.pointer, p, copies.bytes, stream);
    copies.home_valid = true;
    return;
  }
  TORCH_INTERNAL_ASSERT(false, "a storage has no valid copy");
}

void make_only_valid(Copies& copies, size_t position, size_t home) {
  copies.home_valid = position == home;
  for (size_t p = 0; p < copies.replicas.size(); ++p) {
    copies.replicas[p].valid = p == position && p != home;
  }
}

// Gives back the replicas on one device of storages that are valid elsewhere.
void evict(const PhysicalDevice& device, const Copies& keep) {
  ReplicaPool& memory = pool(device);
  for (auto& [home, copies] : table().copies) {
    if (&copies == &keep || !copies.home_valid) continue;
    const Ordinal& devices = ordinal(copies.ordinal);
    for (size_t p = 0; p < copies.replicas.size(); ++p) {
      Replica& replica = copies.replicas[p];
      if (devices.devices[p] != &device || !replica.memory.pointer) continue;
      memory.give_back(std::move(replica.memory));
      replica = {};
    }
  }
  memory.trim();
}

void ensure_memory(Copies& copies, size_t position, Stream& stream) {
  Replica& replica = copies.replicas[position];
  if (replica.memory.pointer != nullptr) return;
  const PhysicalDevice& device = *ordinal(copies.ordinal).devices[position];
  replica.memory = pool(device).take(copies.bytes, stream);
  if (replica.memory.pointer == nullptr) {
    evict(device, copies);
    replica.memory = pool(device).take(copies.bytes, stream);
  }
  TORCH_CHECK_WITH(OutOfMemoryError, replica.memory.pointer != nullptr,
                   "XPU out of memory: ", device.name, " has no room for a copy of ",
                   copies.bytes, " bytes; ", pool(device).bytes_taken(),
                   " bytes are held by other copies.");
}

bool covers(const at::TensorBase& tensor) {
  return tensor.nbytes() == tensor.storage().nbytes() &&
         tensor.is_non_overlapping_and_dense();
}

}  // namespace

void* pointer_on(const at::TensorBase& tensor, size_t position, Access access,
                 Stream& stream) {
  // Asks for the home pointer first: a write makes a copy-on-write storage private.
  void* home = access == Access::read ? const_cast<void*>(tensor.const_data_ptr())
                                      : tensor.mutable_data_ptr();
  const Ordinal& devices = stream.ordinal();
  if (devices.devices.size() == 1 || tensor.numel() == 0) return home;
  const c10::StorageImpl& storage = *tensor.storage().unsafeGetStorageImpl();
  if (position == devices.home && entries.load(std::memory_order_acquire) == 0) {
    return home;
  }
  const bool overwrites = access == Access::write && covers(tensor);
  std::lock_guard<std::mutex> lock(table().mutex);
  if (position == devices.home) {
    Copies* copies = find(storage);
    if (copies == nullptr) return home;
    if (!overwrites) fetch_home(storage, *copies, stream);
    if (access != Access::read) make_only_valid(*copies, position, devices.home);
    return home;
  }
  Copies& copies = find_or_make(storage);
  TORCH_INTERNAL_ASSERT(!copies.escaped, "a storage that escaped cannot leave home");
  ensure_memory(copies, position, stream);
  Replica& replica = copies.replicas[position];
  replica.memory.use(stream);
  if (!replica.valid && !overwrites) {
    fetch_home(storage, copies, stream);
    copy_between(devices, replica.memory.pointer, position, home_of(storage),
                 devices.home, copies.bytes, stream);
    replica.valid = true;
  }
  if (access != Access::read) make_only_valid(copies, position, devices.home);
  const auto offset =
      static_cast<const char*>(home) - static_cast<const char*>(home_of(storage));
  return static_cast<char*>(replica.memory.pointer) + offset;
}

void bring_home(const c10::StorageImpl& storage, Access access) {
  if (entries.load(std::memory_order_acquire) == 0) return;
  Stream& stream = current_stream(storage.device().index());
  std::lock_guard<std::mutex> lock(table().mutex);
  Copies* copies = find(storage);
  if (copies == nullptr) return;
  fetch_home(storage, *copies, stream);
  if (access != Access::read) {
    make_only_valid(*copies, stream.ordinal().home, stream.ordinal().home);
  }
}

void escape(const c10::StorageImpl& storage) {
  const Placement* now = installed_placement();
  if (now == nullptr || home_of(storage) == nullptr) return;
  const Ordinal& devices = ordinal(storage.device().index());
  if (devices.devices.size() == 1) return;
  bring_home(storage, Access::write);
  current_stream(storage.device().index()).wait();
  std::lock_guard<std::mutex> lock(table().mutex);
  find_or_make(storage).escaped = true;
}

bool may_leave_home(const c10::StorageImpl& storage) {
  if (!is_ours(storage)) return false;
  if (entries.load(std::memory_order_acquire) == 0) return true;
  std::lock_guard<std::mutex> lock(table().mutex);
  const Copies* copies = find(storage);
  return copies == nullptr || !copies->escaped;
}

bool is_valid_on(const c10::StorageImpl& storage, size_t position) {
  const size_t home = ordinal(storage.device().index()).home;
  if (entries.load(std::memory_order_acquire) == 0) return position == home;
  std::lock_guard<std::mutex> lock(table().mutex);
  const Copies* copies = find(storage);
  if (copies == nullptr) return position == home;
  return position == home ? copies->home_valid : copies->replicas[position].valid;
}

size_t replica_bytes(c10::DeviceIndex index, size_t position) {
  std::lock_guard<std::mutex> lock(table().mutex);
  return pool(*ordinal(index).devices.at(position)).bytes_taken();
}

void forget_replicas(void* base) noexcept {
  if (entries.load(std::memory_order_acquire) == 0) return;
  std::lock_guard<std::mutex> lock(table().mutex);
  const auto found = table().copies.find(base);
  if (found == table().copies.end()) return;
  Copies& copies = found->second;
  const Placement* now = installed_placement();
  for (size_t p = 0; p < copies.replicas.size(); ++p) {
    if (now == nullptr || copies.replicas[p].memory.pointer == nullptr) continue;
    pool(*now->ordinals[copies.ordinal].devices[p])
        .give_back(std::move(copies.replicas[p].memory));
  }
  table().copies.erase(found);
  --entries;
}

void release_replicas() {
  std::lock_guard<std::mutex> lock(table().mutex);
  for (auto& [device, memory] : table().pools) memory->trim();
}

}  // namespace xpurt

namespace {
const bool listening = [] {
  xpurt::on_free(&xpurt::forget_replicas);
  return true;
}();
}  // namespace

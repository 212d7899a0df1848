#include "replica.h"

#include <c10/util/Exception.h>

#include <memory>
#include <mutex>
#include <unordered_map>
#include <unordered_set>

#include "allocator.h"
#include "capture.h"
#include "device_counts.h"
#include "device_failure.h"
#include "foreign_kernels.h"
#include "lazy_conversion.h"
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
// (Stream::queue orders them): a copy is submitted to the stream that needs it, after
// all that this stream did before. Another stream that finds the copy made waits for
// it there, though its user sees two reads and has no reason to order them. It waits
// for the last write too: two streams may write to parts of one storage, and a copy
// takes the whole.
//
// What is not covered: two threads that write to parts of one storage at the same
// time, one through a kernel of the host.
struct Replica {
  ReplicaMemory memory;
  bool valid = false;
};

struct Copies {
  c10::DeviceIndex ordinal = 0;
  size_t bytes = 0;
  bool home_valid = true;
  bool escaped = false;
  bool needed = false;            // by operands that are being resolved: not to evict
  Stream* changed_by = nullptr;   // submitted the last write or copy ...
  sycl::event changed;            // ... which is done when this is
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

Copies* find(const void* home) {
  const auto found = table().copies.find(home);
  return found == table().copies.end() ? nullptr : &found->second;
}

Copies& find_or_make(const c10::StorageImpl& storage) {
  auto [found, made] = table().copies.try_emplace(home_of(storage));
  if (made) {
    ++entries;
    found->second.ordinal = storage.device().index();
    found->second.bytes = storage.nbytes();
    found->second.replicas.resize(ordinal(storage.device().index()).devices.size());
  }
  return found->second;
}

void wait_for_change(Copies& copies, Stream& stream) {
  if (copies.changed_by == nullptr || copies.changed_by == &stream) return;
  if (!copies.changed_by->idle()) stream.follow(copies.changed);
}

void note_change(Copies& copies, Stream& stream, const sycl::event& done) {
  copies.changed_by = &stream;
  copies.changed = done;
}

// A copy between two devices, both ends by position. Two devices that the host
// cannot read go by way of host memory.
sycl::event copy_between(const Ordinal& devices, void* to, size_t to_position,
                         const void* from, size_t from_position, size_t bytes,
                         Stream& stream) {
  const auto copied = [&](size_t position, void* into, const void* out_of) {
    sycl::event done = submit_to(
        *devices.devices[position], [] { return "a copy"; },
        [&] { return stream.queue(position)->memcpy(into, out_of, bytes); });
    record_work(stream, position, done, DeviceWork::copy(bytes));
    count_moved(devices.devices[position]->id, bytes);
    return done;
  };
  const bool to_host = devices.devices[to_position]->host_accessible;
  const bool from_host = devices.devices[from_position]->host_accessible;
  if (to_host || from_host) {
    return copied(from_host ? to_position : from_position, to, from);
  }
  std::vector<char> staging(bytes);
  copied(from_position, staging.data(), from).wait();
  sycl::event done = copied(to_position, to, staging.data());
  done.wait();
  return done;
}

void fetch_home(const void* home, Copies& copies, Stream& stream) {
  if (copies.home_valid) return;
  const Ordinal& devices = ordinal(copies.ordinal);
  for (size_t p = 0; p < copies.replicas.size(); ++p) {
    Replica& replica = copies.replicas[p];
    if (!replica.valid) continue;
    replica.memory.use(stream);
    note_change(copies, stream,
                copy_between(devices, const_cast<void*>(home), devices.home,
                             replica.memory.pointer, p, copies.bytes, stream));
    copies.home_valid = true;
    return;
  }
  TORCH_INTERNAL_ASSERT(false, "a storage has no valid copy");
}

// Home may be written by work of other streams that was submitted before the table
// knew of the storage.
void wait_for_others(const Copies& copies, Stream& stream) {
  if (copies.changed_by != nullptr) return;
  for (Stream* other : busy_streams(copies.ordinal)) {
    if (other != &stream) stream.follow(other->record());
  }
}

void fetch_replica(const void* home, Copies& copies, size_t position, Stream& stream) {
  Replica& replica = copies.replicas[position];
  if (replica.valid) return;
  fetch_home(home, copies, stream);
  wait_for_others(copies, stream);
  const Ordinal& devices = ordinal(copies.ordinal);
  note_change(copies, stream,
              copy_between(devices, replica.memory.pointer, position, home,
                           devices.home, copies.bytes, stream));
  replica.valid = true;
}

void make_only_valid(Copies& copies, size_t position, size_t home) {
  copies.home_valid = position == home;
  for (size_t p = 0; p < copies.replicas.size(); ++p) {
    copies.replicas[p].valid = p == position && p != home;
  }
}

// Gives back the replicas on one device of storages that are valid elsewhere.
void evict(const PhysicalDevice& device) {
  ReplicaPool& memory = pool(device);
  for (auto& [home, copies] : table().copies) {
    if (copies.needed || !copies.home_valid) continue;
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
    evict(device);
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

size_t Operands::add(const at::TensorBase& tensor, Access access) {
  // Asks for the home pointer at once, before any lock: a write makes a copy-on-write
  // storage private, which may wait.
  if (C10_UNLIKELY(is_capturing(stream_))) known_to_graph(tensor);
  void* home = access == Access::read ? const_cast<void*>(tensor.const_data_ptr())
                                      : tensor.mutable_data_ptr();
  operands_.push_back({tensor, access, home});
  return operands_.size() - 1;
}

void Operands::resolve() {
  const Ordinal& devices = stream_.ordinal();
  if (devices.devices.size() == 1) return;
  const bool at_home = position_ == devices.home;
  if (!at_home) adapt_foreign_kernels();
  lock_ = std::unique_lock(table().mutex);
  struct Known {
    Operand* operand;
    const void* home;  // of the storage
    Copies* copies;
    bool whole;  // overwritten
  };
  c10::SmallVector<Known, 4> known;
  for (Operand& each : operands_) {
    if (each.tensor.numel() == 0) continue;
    const c10::StorageImpl& storage = *each.tensor.storage().unsafeGetStorageImpl();
    Copies* copies = at_home ? find(home_of(storage)) : &find_or_make(storage);
    if (copies == nullptr) continue;
    TORCH_CHECK_WITH(OutOfMemoryError, at_home || !copies->escaped,
                     "XPU out of memory: a storage whose address is known outside has "
                     "no room but at home");
    copies->needed = true;
    known.push_back({&each, home_of(storage), copies,
                     each.access == Access::write && covers(each.tensor)});
  }
  const auto release = [&] {
    for (const Known& each : known) each.copies->needed = false;
  };
  try {
    for (const Known& each : known) {
      if (!at_home) ensure_memory(*each.copies, position_, stream_);
      wait_for_change(*each.copies, stream_);
    }
    // All reads first: an operand may be written whole and read as well.
    for (const Known& each : known) {
      if (each.whole) continue;
      if (at_home) {
        fetch_home(each.home, *each.copies, stream_);
      } else {
        fetch_replica(each.home, *each.copies, position_, stream_);
      }
    }
  } catch (...) {
    release();
    lock_.unlock();
    throw;
  }
  release();
  for (const Known& each : known) {
    if (at_home) continue;
    ReplicaMemory& memory = each.copies->replicas[position_].memory;
    memory.use(stream_);
    const auto offset = static_cast<const char*>(each.operand->pointer) -
                        static_cast<const char*>(each.home);
    each.operand->pointer = static_cast<char*>(memory.pointer) + offset;
  }
}

void Operands::submitted(const sycl::event& done, const DeviceWork& work) {
  record_work(stream_, position_, done, work);
  if (!lock_.owns_lock()) return;
  for (const Operand& each : operands_) {
    if (each.access == Access::read || each.tensor.numel() == 0) continue;
    Copies* copies = find(home_of(*each.tensor.storage().unsafeGetStorageImpl()));
    if (copies == nullptr) continue;
    make_only_valid(*copies, position_, stream_.ordinal().home);
    note_change(*copies, stream_, done);
  }
  lock_.unlock();
}

void bring_home(const c10::StorageImpl& storage, Access access) {
  if (entries.load(std::memory_order_acquire) == 0) return;
  Stream& stream = current_stream(storage.device().index());
  std::lock_guard<std::mutex> lock(table().mutex);
  Copies* copies = find(home_of(storage));
  if (copies == nullptr) return;
  wait_for_change(*copies, stream);
  fetch_home(home_of(storage), *copies, stream);
  if (access != Access::read) {
    make_only_valid(*copies, stream.ordinal().home, stream.ordinal().home);
  }
}

void bring_home_now(const void* home) {
  if (entries.load(std::memory_order_acquire) == 0) return;
  std::unique_lock<std::mutex> lock(table().mutex);
  Copies* copies = find(home);
  if (copies == nullptr) return;
  Stream& stream = current_stream(copies->ordinal);
  wait_for_change(*copies, stream);
  fetch_home(home, *copies, stream);
  lock.unlock();
  stream.wait();
}

void bring_all_home() {
  if (entries.load(std::memory_order_acquire) == 0 || in_bad_fork()) return;
  std::unordered_set<Stream*> used;
  {
    std::lock_guard<std::mutex> lock(table().mutex);
    for (auto& [home, copies] : table().copies) {
      if (copies.home_valid) continue;
      Stream& stream = current_stream(copies.ordinal);
      wait_for_change(copies, stream);
      fetch_home(home, copies, stream);
      used.insert(&stream);
    }
  }
  // With the GIL: the caller holds a lock.
  for (Stream* stream : used) stream->record().wait();
}

void escape(const c10::StorageImpl& storage) {
  const void* home = home_of(storage);
  if (installed_placement() == nullptr || home == nullptr) return;
  const c10::DeviceIndex index = storage.device().index();
  if (ordinal(index).devices.size() == 1) return;
  Stream& stream = current_stream(index);
  {
    std::lock_guard<std::mutex> lock(table().mutex);
    // Foreign memory has no replicas, and nobody would tell when it goes.
    Copies* copies = is_ours(storage) ? &find_or_make(storage) : find(home);
    if (copies != nullptr) {
      wait_for_change(*copies, stream);
      fetch_home(home, *copies, stream);
      make_only_valid(*copies, stream.ordinal().home, stream.ordinal().home);
      copies->escaped = true;
    }
  }
  stream.wait();
}

bool may_leave_home(const c10::StorageImpl& storage) {
  if (!is_ours(storage)) return false;
  if (entries.load(std::memory_order_acquire) == 0) return true;
  std::lock_guard<std::mutex> lock(table().mutex);
  const Copies* copies = find(home_of(storage));
  return copies == nullptr || !copies->escaped;
}

bool is_valid_on(const c10::StorageImpl& storage, size_t position) {
  const size_t home = ordinal(storage.device().index()).home;
  if (entries.load(std::memory_order_acquire) == 0) return position == home;
  std::lock_guard<std::mutex> lock(table().mutex);
  const Copies* copies = find(home_of(storage));
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

#include "memory/replica/replica.h"

#include <c10/util/Exception.h>

#include "device/event_status.h"
#include "memory/allocator.h"
#include "memory/element_span.h"
#include "memory/known_storages.h"
#include "memory/replica/device_override.h"
#include "memory/replica/host_writes.h"
#include "memory/replica/table.h"
#include "stream/capture.h"

namespace xpurt {

using namespace replicas;

// Note [Home and replicas]
// ~~~~~~~~~~~~~~~~~~~~~~~~
// A tensor's data pointer is always that of its home copy. Where an ordinal has several
// devices that share no memory, the other devices work on replicas. A replica is a copy
// of an allocation, and all storages and views in it share it. It is made at the first
// use, and kept in a table: see Note [Storages inside others]. Each copy is valid or
// stale on ranges of bytes; a write leaves one valid copy of its range. The
// table records every access, because every kernel gets its pointers from it. Code that
// gives a raw pointer to other code calls escape(): such a storage stays at home.
//
// The table also records the submitted work, of any stream, that reads and writes each
// copy. New work waits for that work: see Note [Order by data]. This also orders
// streams that a user has not ordered: two of them may write to parts of one storage,
// while a copy takes the whole storage; or both read, and one of them makes the copy.
// Work that the table cannot see (on memory of other code, captured work) keeps total
// order. Kernels of the host are no submitted work: see Note [Host writes].
namespace {

void (*leaves_home)() = nullptr;

const c10::StorageImpl& storage_of(const at::TensorBase& tensor) {
  return *tensor.storage().unsafeGetStorageImpl();
}

}  // namespace

void before_leaving_home(void (*callback)()) {
  leaves_home = callback;
}

size_t Operands::add(const at::TensorBase& tensor, Access access) {
  // Gets the home pointer at once, before any lock is taken: a write makes a
  // copy-on-write storage private, which may wait.
  if (C10_UNLIKELY(is_capturing(stream_))) known_to_graph(tensor);
  void* home = access == Access::read ? const_cast<void*>(tensor.const_data_ptr())
                                      : tensor.mutable_data_ptr();
  operands_.push_back({tensor, access, home});
  return operands_.size() - 1;
}

// Finds the table's entries for the operands. At home, memory of other allocators gets
// no entry: its free is not reported to the table.
void Operands::look_up(bool at_home) {
  by_data_ = !is_capturing(stream_);
  for (Operand& each : operands_) {
    each.copies = nullptr;
    if (each.tensor.numel() == 0) continue;
    const HomeMemory home = home_of(storage_of(each.tensor));
    Copies* copies = home.is_ours && (by_data_ || !at_home)
                         ? &find_or_make(home, stream_.ordinal())
                         : find(home);
    const bool stays = copies == nullptr || copies->escaped;
    TORCH_CHECK_WITH(OutOfMemoryError, at_home || !stays,
                     "XPU out of memory: a storage whose address is known outside has "
                     "no room but at home");
    if (copies == nullptr) {
      by_data_ = false;
      continue;
    }
    each.copies = copies;
    each.offset = home.offset;
    find_range(each, at_home);
  }
}

// Note [Shards]
// ~~~~~~~~~~~~~
// A copy is valid on ranges of bytes. Ordinary work treats a storage as one: if it
// reads or changes a part, the whole storage becomes valid on its device. Otherwise,
// views used on several devices would spread a storage over them. If one op is split,
// each device takes only the bytes between the first and the last element of its
// shards. The next op that is split in the same way finds its shards where they are.
// So does work elsewhere while the host writes to other bytes: see Note [Host writes].
void Operands::find_range(Operand& operand, bool at_home) const {
  const at::TensorBase& tensor = operand.tensor;
  operand.range = operand.copies->whole;
  const bool dense = tensor.is_non_overlapping_and_dense();
  const Copies& copies = *operand.copies;
  if (is_on_shard() || (!at_home && others_write(copies.home, copies.whole.size()))) {
    const Interval span = element_span(*tensor.unsafeGetTensorImpl());
    operand.range = {operand.offset + span.begin, operand.offset + span.end};
  }
  operand.whole = operand.access == Access::write && dense &&
                  tensor.nbytes() == operand.range.size();
}

// An operand elsewhere whose bytes a host kernel of another thread writes; nullptr if
// there is none.
const Operands::Operand* Operands::written_by_host() const {
  for (const Operand& each : operands_) {
    if (each.copies == nullptr) continue;
    const auto* home = static_cast<const char*>(each.copies->home);
    if (must_wait_for_host(home + each.range.begin, each.range.size())) return &each;
  }
  return nullptr;
}

void Operands::lock_and_look_up(bool at_home) {
  std::vector<std::unique_ptr<NoHostWrites>> waited;
  for (;;) {
    lock_ = std::unique_lock(table().mutex);
    look_up(at_home);
    const Operand* written = at_home ? nullptr : written_by_host();
    if (written == nullptr) return;
    const auto* home = static_cast<const char*>(written->copies->home);
    const Interval range = written->range;
    lock_.unlock();
    waited.push_back(std::make_unique<NoHostWrites>(home + range.begin, range.size()));
  }
}

void Operands::fetch_all() {
  const size_t holder = holder_of(stream_.ordinal(), position_);
  const uint64_t now = ++table().ops;
  for (const Operand& each : operands_) {
    if (each.copies == nullptr) continue;
    each.copies->uses.add(now, each.access != Access::write,
                          each.access != Access::read);
    ensure_memory(*each.copies, holder, stream_);
  }
  // All reads first: an operand may be fully overwritten and read as well.
  for (const Operand& each : operands_) {
    if (each.copies == nullptr || each.whole) continue;
    fetch(*each.copies, holder, each.range, stream_);
  }
}

void Operands::resolve() {
  const Ordinal& devices = stream_.ordinal();
  if (devices.devices.size() == 1) return;
  const size_t holder = holder_of(devices, position_);
  const bool at_home = holder == devices.home;
  if (position_ != devices.home && leaves_home != nullptr) leaves_home();
  const auto need = [&](bool needed) {
    for (const Operand& each : operands_) {
      if (each.copies != nullptr) each.copies->needed = needed;
    }
  };
  try {
    lock_and_look_up(at_home);
    need(true);
    fetch_all();
  } catch (...) {
    need(false);
    if (lock_.owns_lock()) lock_.unlock();
    throw;
  }
  need(false);
  for (Operand& each : operands_) {
    if (each.copies == nullptr) continue;
    const ReplicaMemory& memory = each.copies->by_position[holder].memory;
    before_.add(each.access == Access::read ? memory.uses.written : memory.uses.all());
    if (at_home) continue;
    const auto offset = static_cast<const char*>(each.pointer) -
                        static_cast<const char*>(each.copies->home);
    each.pointer = static_cast<char*>(memory.pointer) + offset;
  }
}

Submission Operands::queue() {
  if (by_data_) return stream_.queue_after(position_, before_, &ticket_);
  stream_.follow_others(before_);
  return stream_.queue(position_, &ticket_);
}

void Operands::submitted(const sycl::event& done, const DeviceWork& work) {
  record_work(stream_, position_, done, work);
  if (!lock_.owns_lock()) return;
  const size_t holder = holder_of(stream_.ordinal(), position_);
  if (!is_capturing(stream_)) uses_.add({&stream_, ticket_, done});
  for (const Operand& each : operands_) {
    if (each.copies == nullptr) continue;
    if (each.access != Access::read) {
      make_only_valid(*each.copies, holder, each.range);
    }
    MemoryUses& uses = each.copies->by_position[holder].memory.uses;
    for (const Use& use : uses_) {
      each.access == Access::read ? uses.record_read(use) : uses.record_write(use);
    }
  }
  lock_.unlock();
}

void bring_home(const c10::StorageImpl& storage, Access access, Uses* pending) {
  if (replicas::is_empty()) return;
  Stream& stream = current_stream(storage.device().index());
  const HomeMemory home = home_of(storage);
  std::lock_guard<Mutex> lock(table().mutex);
  Copies* copies = find(home);
  if (copies == nullptr) {
    pending->add(uses_before(home.begin, home.bytes));
    return;
  }
  copies->uses.add(table().ops, access != Access::write, access != Access::read);
  fetch(*copies, stream.ordinal().home, copies->whole, stream);
  const MemoryUses& uses = copies->at_home().memory.uses;
  pending->add(access == Access::read ? uses.written : uses.all());
  if (access != Access::read) {
    make_only_valid(*copies, stream.ordinal().home, copies->whole);
  }
}

void bring_home(const c10::StorageImpl& storage, Access access) {
  Uses pending;
  bring_home(storage, access, &pending);
  current_stream(storage.device().index()).follow_others(pending);
}

void wait_for_new_memory(const void* memory, size_t bytes, Stream& stream) {
  if (stream.idle()) return;
  Uses pending;
  if (!replicas::is_empty()) {
    std::lock_guard<Mutex> lock(table().mutex);
    pending = uses_before(memory, bytes);
  }
  stream.wait_for(pending);
}

void bring_home_now(const void* home) {
  const c10::DeviceIndex index = device_of_pointer(home);
  if (replicas::is_empty() || index < 0) return;
  Stream& stream = current_stream(index);
  const Extent block = block_of_pointer(home);
  std::unique_lock<Mutex> lock(table().mutex);
  Copies* copies = find({.begin = block.start});
  if (copies == nullptr) return;
  fetch(*copies, stream.ordinal().home, copies->whole, stream);
  const Uses pending = copies->at_home().memory.uses.all();
  lock.unlock();
  stream.wait_for(pending);
}

void bring_all_home() {
  if (replicas::is_empty() || in_bad_fork()) return;
  // Found before the lock is taken: to make a stream takes other locks.
  std::unordered_map<const Ordinal*, Stream*> streams;
  const Placement* now = installed_placement();
  if (now == nullptr) return;
  for (size_t i = 0; i < now->ordinals.size(); ++i) {
    const Ordinal& devices = now->ordinals[i];
    if (devices.devices.size() == 1) continue;
    streams[&devices] = &current_stream(static_cast<c10::DeviceIndex>(i));
  }
  Uses pending;
  {
    std::lock_guard<Mutex> lock(table().mutex);
    for (auto& [home, copies] : table().copies) {
      const auto stream = streams.find(&copies.on);
      if (stream == streams.end()) continue;  // of a placement that is being replaced
      fetch(copies, copies.on.home, copies.whole, *stream->second);
      pending.add(copies.at_home().memory.uses.written);
    }
  }
  // Keeps the GIL: the caller holds a lock.
  for (const Use& use : pending) {
    if (!use.stream->has_seen(use.ticket)) wait_for_end(use.done);
  }
}

void escape(const c10::StorageImpl& storage) {
  const HomeMemory home = home_of(storage);
  if (installed_placement() == nullptr || home.begin == nullptr) return;
  const c10::DeviceIndex index = storage.device().index();
  if (ordinal(index).devices.size() == 1) return;
  Stream& stream = current_stream(index);
  Uses pending;
  {
    std::lock_guard<Mutex> lock(table().mutex);
    // Memory of other allocators has no replicas, and its free is not reported.
    Copies* copies = home.is_ours ? &find_or_make(home, stream.ordinal()) : find(home);
    if (copies != nullptr) {
      fetch(*copies, stream.ordinal().home, copies->whole, stream);
      make_only_valid(*copies, stream.ordinal().home, copies->whole);
      copies->escaped = true;
      pending = copies->at_home().memory.uses.all();
    }
  }
  stream.wait_for(pending);
}

size_t bytes_missing_on(const c10::StorageImpl& storage, size_t position) {
  const Ordinal& devices = ordinal(storage.device().index());
  const size_t holder = holder_of(devices, position);
  const size_t bytes = holder == devices.home ? 0 : storage.nbytes();
  if (replicas::is_empty()) return bytes;
  const HomeMemory home = home_of(storage);
  std::lock_guard<Mutex> lock(table().mutex);
  const Copies* copies = find(home);
  if (copies == nullptr) return bytes;
  return copies->whole.size() - copies->by_position[holder].valid.bytes();
}

bool is_valid_on(const c10::StorageImpl& storage, size_t position) {
  return bytes_missing_on(storage, position) == 0;
}

size_t replica_bytes(c10::DeviceIndex index, size_t position) {
  const PhysicalDevice& device = *ordinal(index).devices.at(position);
  std::lock_guard<Mutex> lock(table().mutex);
  return pool(device).bytes_taken();
}

MemoryAmounts working_memory(const Ordinal& on) {
  const PhysicalDevice& device = on.working_device();
  return memory_amounts(device.device, device.total_memory, [&] {
    std::lock_guard<Mutex> lock(table().mutex);
    return pool(device).bytes_taken();
  });
}

}  // namespace xpurt

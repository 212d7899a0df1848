#include "memory/replica/table.h"

#include <c10/util/Exception.h>

#include "device/device_counts.h"
#include "device/device_failure.h"
#include "device/event_status.h"
#include "memory/allocator.h"
#include "memory/replica/transfers.h"

namespace xpurt::replicas {
namespace {

std::atomic<size_t> entries{0};

constexpr const char* kNoRoom =
    " All operands of one op have to fit into the GPU's memory together. Make the op "
    "smaller, or use the mapping \"AUTO\", under which the CPU computes what has no "
    "room on a GPU.";

void count_entries() {
  entries.store(table().copies.size() + table().freed_homes.size(),
                std::memory_order_release);
}

// A copy between two devices, both given by position. If the host can read the memory
// of neither device, the bytes go through host memory.
void transfer(Copies& copies, size_t from_position, size_t to_position, Interval range,
              Stream& stream) {
  const Ordinal& devices = copies.on;
  ReplicaMemory& from = copies.by_position[from_position].memory;
  ReplicaMemory& to = copies.by_position[to_position].memory;
  count_transfer(*devices.devices[from_position], *devices.devices[to_position],
                 range.size());
  Uses before = to.uses.all();
  before.add(from.uses.written);
  const auto copied = [&](size_t position, void* into, const void* out_of) {
    const PhysicalDevice& device = *devices.devices[position];
    Ticket ticket;
    sycl::event done;
    try {
      done = submit_to(
          device, [] { return "a copy"; },
          [&] {
            return stream.queue_after(position, before, &ticket)
                ->memcpy(into, out_of, range.size());
          });
    } catch (const DeviceFailure& failure) {
      if (position != devices.home) take_out(failure);
      throw;
    }
    count_moved(device.id, range.size());
    record_work(stream, position, done, DeviceWork::copy(range.size()));
    return Use{&stream, ticket, done};
  };
  void* const into = static_cast<char*>(to.pointer) + range.begin;
  const void* const out_of = static_cast<const char*>(from.pointer) + range.begin;
  const bool to_host = devices.devices[to_position]->host_accessible;
  const bool from_host = devices.devices[from_position]->host_accessible;
  if (to_host || from_host) {
    const Use use = copied(from_host ? to_position : from_position, into, out_of);
    from.uses.record_read(use);
    to.uses.record_write(use);
    return;
  }
  std::vector<char> staging(range.size());
  wait_for_end(copied(from_position, staging.data(), out_of).done);
  wait_for_end(copied(to_position, into, staging.data()).done);
  to.uses = {};
}

void fetch_home(Copies& copies, Interval range, Stream& stream) {
  const size_t home = copies.on.home;
  Copy& to = copies.by_position[home];
  for (size_t p = 0; p < copies.by_position.size(); ++p) {
    if (p == home) continue;
    for (const Interval& missing : to.valid.missing(range)) {
      for (const Interval& part : copies.by_position[p].valid.inside(missing)) {
        transfer(copies, p, home, part, stream);
        to.valid.add(part);
      }
    }
  }
  TORCH_INTERNAL_ASSERT(to.valid.covers(range), "a storage has no valid copy");
}

}  // namespace

Table& table() {
  static Table* const leaked = new Table;
  return *leaked;
}

bool is_empty() {
  return entries.load(std::memory_order_acquire) == 0;
}

ReplicaPool& pool(const PhysicalDevice& device) {
  auto& slot = table().pools[&device];
  if (!slot) slot = std::make_unique<ReplicaPool>(device);
  return *slot;
}

// Note [Devices that share memory]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// Some devices, such as an integrated GPU, run kernels on any pointer of the host. Such
// a device works on home copies in host memory: it has no replicas, and nothing is
// moved. Only the order of the work is kept.
size_t holder_of(const Ordinal& devices, size_t position) {
  const bool reads_home =
      devices.devices[position]->system_usm && devices.home_device().host_accessible;
  return reads_home ? devices.home : position;
}

// Note [Storages inside others]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// Several storages may share bytes: untyped_storage()[28:], from_dlpack(x[7:]), a
// tensor made of an address, a copy-on-write clone. Each of them has a data pointer of
// its own, which may lie inside the memory of another. All of them have to find the
// same copies, or one of them reads and overwrites stale bytes. So the table has one
// entry for each allocation, and the allocator's own table of segments leads from any
// address in an allocation to its first byte, without a lock if the address is not
// xpurt's. A storage that owns its allocation, as nearly all do, is the allocation: it
// needs no search. An operand's bytes are counted from the first byte of the
// allocation.
//
// An ordered map of the entries, searched by address, was rejected: an entry may not
// exist yet when a storage inside its memory is used first.
HomeMemory home_of(const c10::StorageImpl& storage) {
  const c10::DataPtr& data = storage.data_ptr();
  if (C10_LIKELY(data.get_deleter() == device_allocator().raw_deleter())) {
    return {data.get(), storage.nbytes(), 0, true};
  }
  const Extent block = block_of_pointer(data.get());
  if (block.start == nullptr) return {data.get(), storage.nbytes(), 0, false};
  const size_t offset =
      static_cast<const char*>(data.get()) - static_cast<const char*>(block.start);
  return {block.start, block.bytes, offset, true};
}

Copies* find(const HomeMemory& home) {
  const auto found = table().copies.find(home.begin);
  return found == table().copies.end() ? nullptr : &found->second;
}

Copies& find_or_make(const HomeMemory& home_memory, const Ordinal& devices) {
  auto [found, made] = table().copies.try_emplace(home_memory.begin, devices);
  Copies& copies = found->second;
  if (made) {
    copies.whole = {0, home_memory.bytes};
    copies.home = found->first;
    Copy& home = copies.at_home();
    home.memory.pointer = const_cast<void*>(copies.home);
    home.valid.add(copies.whole);
    home.memory.uses.written =
        table().freed_homes.take_over(copies.home, copies.whole.end);
    count_entries();
  }
  return copies;
}

Uses uses_before(const void* memory, size_t bytes) {
  return table().freed_homes.uses_of(memory, bytes);
}

void ensure_memory(Copies& copies, size_t position, Stream& stream) {
  Copy& copy = copies.by_position[position];
  if (copy.memory.pointer != nullptr) return;
  const PhysicalDevice& device = *copies.on.devices[position];
  const size_t bytes = copies.whole.size();
  do {
    copy.memory = pool(device).take(bytes);
  } while (copy.memory.pointer == nullptr && evict(device, bytes, stream));
  TORCH_CHECK_WITH(OutOfMemoryError, copy.memory.pointer != nullptr,
                   "XPU out of memory: ", device.name, " has no room for a copy of ",
                   bytes, " bytes; ", pool(device).bytes_taken(),
                   " bytes are held by other copies.",
                   copies.on.overflows ? kNoRoom : "");
}

void fetch(Copies& copies, size_t position, Interval range, Stream& stream) {
  Copy& to = copies.by_position[position];
  if (to.valid.covers(range)) return;
  const size_t home = copies.on.home;
  if (position == home) return fetch_home(copies, range, stream);
  for (const Interval& missing : to.valid.missing(range)) {
    fetch_home(copies, missing, stream);
  }
  for (const Interval& missing : to.valid.missing(range)) {
    transfer(copies, home, position, missing, stream);
    to.valid.add(missing);
  }
}

void make_only_valid(Copies& copies, size_t position, Interval range) {
  for (size_t p = 0; p < copies.by_position.size(); ++p) {
    if (p == position) {
      copies.by_position[p].valid.add(range);
    } else {
      copies.by_position[p].valid.remove(range);
    }
  }
}

}  // namespace xpurt::replicas

namespace xpurt {

using namespace replicas;

void forget_replicas(void* base) noexcept {
  if (is_empty()) return;
  std::lock_guard<Mutex> lock(table().mutex);
  const auto found = table().copies.find(base);
  if (found == table().copies.end()) return;
  Copies& copies = found->second;
  if (installed_placement() != nullptr) {
    const Ordinal& devices = copies.on;
    MemoryUses& home = copies.by_position[devices.home].memory.uses;
    home.drop_finished();
    if (!home.empty()) {
      table().freed_homes.add(copies.home, copies.whole.end, home);
    }
    for (size_t p = 0; p < copies.by_position.size(); ++p) {
      ReplicaMemory& memory = copies.by_position[p].memory;
      if (p == devices.home || memory.pointer == nullptr) continue;
      pool(*devices.devices[p]).give_back(std::move(memory));
    }
  }
  table().copies.erase(found);
  if (table().copies.empty()) table().freed_homes.drop_finished();
  count_entries();
}

void release_replicas() {
  std::lock_guard<Mutex> lock(table().mutex);
  for (auto& [device, memory] : table().pools) memory->trim();
}

}  // namespace xpurt

namespace {
const bool listening = [] {
  xpurt::on_free(&xpurt::forget_replicas);
  return true;
}();
}  // namespace

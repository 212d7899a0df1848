#include "memory/replica/host_writes.h"

#include <algorithm>
#include <vector>

#include "device/device.h"
#include "host/gil.h"
#include "host/mutex.h"
#include "memory/element_span.h"

namespace xpurt {

// Note [Host writes]
// ~~~~~~~~~~~~~~~~~~
// A kernel of the host writes to home memory without a lock, and for as long as it
// runs. Ordinary device work treats a storage as one: a kernel on another device that
// changes row 1 takes the whole storage there, with row 0 as it is at that time. If a
// host kernel of another thread is writing row 0, its bytes were lost: the copy on the
// device counts as the valid one, and the later copy home overwrites them. Parts of one
// tensor that do not overlap may be written by two threads, as on CUDA.
//
// So a host kernel announces the bytes that it will write before these are brought
// home, and withdraws them when it ends, by an exception as well. While bytes are
// announced, the home copy stays the only valid one of them:
// - Work of other threads on another device takes only the bytes that its operands
//   span, as shards do. It runs at the same time as the host kernel if these are other
//   bytes.
// - If they overlap, as columns of one matrix do, it waits for the end of the kernel,
//   and no further kernel begins to write there until its copies are submitted.
// - A copy to home moves only bytes that are not valid at home, so never these.
// - Ops that the kernel itself calls run at home. They would wait for themselves.
// A host kernel that begins after a device took its copies waits for the table's lock,
// and then for the submitted work. One that begins before is seen by that device's
// work, which looks under the table's lock.
//
// No thread waits while it holds a lock or the interpreter lock, and a thread with
// announced writes does not wait for other threads: so no cycle of waits is possible
// among PyTorch's kernels. A kernel of another library may block, for example on a lock
// of the program that another thread holds while it uses the same tensor. Nothing waits
// for such a kernel. Its writes are kept from work on bytes that do not overlap them.
// Nor does anything wait for writes that outlive a call, such as those of a collective:
// their end is the business of who called it.
//
// Rejected: to lock a storage while a host kernel writes to it (two threads could no
// longer write to two rows at the same time, and a kernel that uses its own operand
// hangs); to copy again after the kernel (the work on the device has already used the
// bytes between).
namespace {

struct HostWrite {
  const void* owner;
  const void* thread;  // nullptr if it is not one of the program's
  const char* begin;
  const char* end;
  bool may_block;

  bool overlaps(const char* from, const char* to) const {
    return begin < to && from < end;
  }
};

struct HostWriteTable {
  Mutex mutex{Rank::host_writes};
  Condition changed;
  std::vector<HostWrite> writes;
  std::vector<std::pair<const char*, const char*>> paused;  // by NoHostWrites
  size_t waiting = 0;

  bool is_paused(const char* begin, const char* end) const {
    return std::ranges::any_of(paused, [&](const auto& each) {
      return each.first < end && begin < each.second;
    });
  }
};

HostWriteTable& host_writes() {
  static auto* const leaked = new HostWriteTable;
  return *leaked;
}

// Writes of this thread that others wait for. Its address identifies the thread.
thread_local size_t writes_here = 0;

bool has_one_device(c10::Device device) {
  return ordinal(device.index()).devices.size() == 1;
}

template <typename Condition>
bool any_of_others(const char* begin, const char* end, const Condition& condition) {
  return std::ranges::any_of(host_writes().writes, [&](const HostWrite& each) {
    return each.thread != &writes_here && each.overlaps(begin, end) && condition(each);
  });
}

bool is_in_the_way(const char* begin, const char* end) {
  return any_of_others(begin, end,
                       [](const HostWrite& each) { return !each.may_block; });
}

// Waits with the table's mutex, but without the interpreter lock. `wait` is called
// again after a wake-up.
template <typename Ready>
void wait_without_gil(const Ready& ready) {
  HostWriteTable& table = host_writes();
  const WithoutGil released;
  std::unique_lock<Mutex> lock(table.mutex);
  ++table.waiting;
  table.changed.wait(lock, ready);
  --table.waiting;
}

}  // namespace

void HostWrites::begin(const c10::TensorImpl& tensor) {
  if (tensor.numel() == 0 || !tensor.has_storage() || has_one_device(tensor.device())) {
    return;
  }
  const Interval written = element_span(tensor);
  begin(*tensor.unsafe_storage().unsafeGetStorageImpl(), written.begin, written.end);
}

void HostWrites::begin(const c10::StorageImpl& storage) {
  if (has_one_device(storage.device())) return;
  begin(storage, 0, storage.nbytes());
}

void HostWrites::begin(const c10::StorageImpl& storage, size_t first, size_t last) {
  if (first >= last) return;
  const auto* home = static_cast<const char*>(storage.data_ptr().get());
  const char* from = home + first;
  const char* to = home + last;
  HostWriteTable& table = host_writes();
  for (;;) {
    {
      std::lock_guard<Mutex> lock(table.mutex);
      if (writes_here > 0 || may_block_ || !table.is_paused(from, to)) {
        table.writes.push_back({this, &writes_here, from, to, may_block_});
        begun_ = true;
        if (!may_block_) ++writes_here;
        return;
      }
    }
    wait_without_gil([&] { return !table.is_paused(from, to); });
  }
}

void HostWrites::end() noexcept {
  HostWriteTable& table = host_writes();
  std::lock_guard<Mutex> lock(table.mutex);
  const size_t ended =
      std::erase_if(table.writes, [&](const auto& each) { return each.owner == this; });
  if (!may_block_) writes_here -= ended;
  begun_ = false;
  if (table.waiting > 0) table.changed.notify_all();
}

void LastingHostWrites::begin(const c10::TensorImpl& tensor) {
  if (tensor.numel() == 0 || !tensor.has_storage() || has_one_device(tensor.device())) {
    return;
  }
  const Interval written = element_span(tensor);
  const auto* home = static_cast<const char*>(tensor.unsafe_storage().data_ptr().get());
  std::lock_guard<Mutex> lock(host_writes().mutex);
  host_writes().writes.push_back(
      {this, nullptr, home + written.begin, home + written.end, /*may_block=*/true});
  begun_ = true;
}

LastingHostWrites::~LastingHostWrites() {
  if (!begun_) return;
  std::lock_guard<Mutex> lock(host_writes().mutex);
  std::erase_if(host_writes().writes,
                [&](const HostWrite& each) { return each.owner == this; });
}

bool is_writing_on_host() noexcept {
  return writes_here > 0;
}

bool others_write(const void* begin, size_t bytes) {
  const auto* from = static_cast<const char*>(begin);
  std::lock_guard<Mutex> lock(host_writes().mutex);
  return any_of_others(from, from + bytes, [](const HostWrite&) { return true; });
}

bool must_wait_for_host(const void* begin, size_t bytes) {
  const auto* from = static_cast<const char*>(begin);
  std::lock_guard<Mutex> lock(host_writes().mutex);
  return is_in_the_way(from, from + bytes);
}

NoHostWrites::NoHostWrites(const void* begin, size_t bytes)
    : begin_(static_cast<const char*>(begin)), end_(begin_ + bytes) {
  HostWriteTable& table = host_writes();
  {
    std::lock_guard<Mutex> lock(table.mutex);
    table.paused.emplace_back(begin_, end_);
  }
  wait_without_gil([&] { return !is_in_the_way(begin_, end_); });
}

NoHostWrites::~NoHostWrites() {
  HostWriteTable& table = host_writes();
  std::lock_guard<Mutex> lock(table.mutex);
  table.paused.erase(std::ranges::find(table.paused, std::pair(begin_, end_)));
  if (table.waiting > 0) table.changed.notify_all();
}

}  // namespace xpurt

#include "memory/replica/residency.h"

#include <algorithm>

#include "memory/replica/table.h"

namespace xpurt {

using namespace replicas;

namespace {

// A smaller storage stays: there are few of them, and they take little room.
constexpr size_t kMinStreamed = size_t(1) << 20;

}  // namespace

Residency::Residency(c10::ArrayRef<const c10::StorageImpl*> reads,
                     c10::ArrayRef<const c10::StorageImpl*> writes,
                     const Ordinal& devices)
    : devices_(devices.devices.size()) {
  // Found before the lock is taken: the allocator has locks of its own.
  c10::SmallVector<HomeMemory, 8> homes;
  for (const auto& storages : {reads, writes}) {
    for (const c10::StorageImpl* storage : storages) {
      homes.push_back(home_of(*storage));
      may_leave_ = may_leave_ && homes.back().is_ours;
    }
  }
  missing_.resize(reads.size() * devices_);
  const bool looks = !replicas::is_empty();
  std::unique_lock<Mutex> lock(table().mutex, std::defer_lock);
  if (looks) lock.lock();
  const auto found = [&](const HomeMemory& home) -> const Copies* {
    const Copies* copies = looks ? find(home) : nullptr;
    if (copies != nullptr && copies->escaped) may_leave_ = false;
    return copies;
  };
  for (size_t write = reads.size(); write < homes.size(); ++write) found(homes[write]);
  const bool is_short = looks && replicas::is_short_of_memory();
  if (looks) ++table().ops;
  for (size_t read = 0; read < reads.size(); ++read) {
    const HomeMemory& home = homes[read];
    const bool may_stream = is_short && home.is_ours && home.bytes >= kMinStreamed;
    const Copies* copies = found(home);
    if (may_stream) {
      if (copies == nullptr) copies = &find_or_make(home, devices);  // to know its uses
      streamed_.resize(missing_.size());
    }
    for (size_t position = 0; position < devices_; ++position) {
      const size_t holder = holder_of(devices, position);
      size_t& missing = missing_[read * devices_ + position];
      if (copies != nullptr) {
        missing = copies->whole.size() - copies->by_position[holder].valid.bytes();
      } else {
        missing = holder == devices.home ? 0 : reads[read]->nbytes();
      }
      if (may_stream && missing > 0 && holder != devices.home) {
        streamed_[read * devices_ + position] = !would_stay(*copies, holder);
      }
    }
  }
}

void record_saved(c10::ArrayRef<const c10::StorageImpl*> reads, size_t position,
                  double saved) {
  c10::SmallVector<HomeMemory, 8> homes;
  for (const c10::StorageImpl* storage : reads) homes.push_back(home_of(*storage));
  std::lock_guard<Mutex> lock(table().mutex);
  for (const HomeMemory& home : homes) {
    if (Copies* copies = find(home)) copies->by_position[position].saved = saved;
  }
}

uint64_t Residency::holders() const {
  uint64_t holders = 0;
  for (size_t position = 0; position < devices_; ++position) {
    bool all = true;
    for (size_t at = position; at < missing_.size(); at += devices_) {
      all = all && missing_[at] == 0;
    }
    if (all) holders |= uint64_t{1} << position;
  }
  return holders;
}

}  // namespace xpurt

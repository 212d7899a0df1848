#include "layouts/watched_weights.h"

#include <c10/core/StorageImpl.h>

#include <unordered_map>
#include <vector>

#include "host/mutex.h"

namespace xpurt {
namespace {

using c10::StorageImpl;

// Of all threads: storages whose materializer is the one below, and the number of the
// watch.
Mutex mutex{Rank::packed_weights};
std::unordered_map<const StorageImpl*, uint64_t>& watched() {
  static auto* const leaked = new std::unordered_map<const StorageImpl*, uint64_t>;
  return *leaked;
}
uint64_t watches = 0;

// Those that this thread watches. The weak references keep the addresses from being
// used again.
std::vector<c10::weak_intrusive_ptr<StorageImpl>>& of_thread() {
  thread_local std::vector<c10::weak_intrusive_ptr<StorageImpl>> found;
  return found;
}

// PyTorch calls it as a materializer, and forgets it.
void written(StorageImpl* storage) {
  const std::lock_guard<Mutex> held(mutex);
  watched().erase(storage);
}

uint64_t watch_of(const StorageImpl* storage) {
  const auto at = watched().find(storage);
  return at == watched().end() ? 0 : at->second;
}

}  // namespace

uint64_t watch_weight(const at::Tensor& weight) {
  const std::lock_guard<Mutex> held(mutex);
  StorageImpl* storage = weight.storage().unsafeGetStorageImpl();
  // It is watched already, or a copy on write.
  if (storage->has_materializer()) return watch_of(storage);
  of_thread().push_back(weight.storage().getWeakStorageImpl());
  storage->set_materializer(&written);
  return watched()[storage] = ++watches;
}

bool is_unwritten(const at::Tensor& weight, uint64_t watch) {
  const std::lock_guard<Mutex> held(mutex);
  return watch != 0 && watch_of(weight.storage().unsafeGetStorageImpl()) == watch;
}

void end_watches() {
  const std::lock_guard<Mutex> held(mutex);
  for (const auto& each : of_thread()) {
    const auto storage = each.lock();
    if (storage && watched().erase(storage.get()) > 0) storage->clear_materializer();
  }
  of_thread().clear();
}

}  // namespace xpurt

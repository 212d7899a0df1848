#include "layouts/watched_weights.h"

#include <c10/core/StorageImpl.h>

#include <mutex>
#include <unordered_set>
#include <vector>

namespace xpurt {
namespace {

using c10::StorageImpl;

// Of all threads: storages whose materializer is the one below.
std::mutex mutex;
std::unordered_set<const StorageImpl*>& watched() {
  static auto* const leaked = new std::unordered_set<const StorageImpl*>;
  return *leaked;
}

// Those that this thread watches. The weak references keep the addresses from being
// used again.
std::vector<c10::weak_intrusive_ptr<StorageImpl>>& of_thread() {
  thread_local std::vector<c10::weak_intrusive_ptr<StorageImpl>> found;
  return found;
}

// PyTorch calls it as a materializer, and forgets it.
void written(StorageImpl* storage) {
  const std::lock_guard held(mutex);
  watched().erase(storage);
}

}  // namespace

void watch_weight(const at::Tensor& weight) {
  const std::lock_guard held(mutex);
  StorageImpl* storage = weight.storage().unsafeGetStorageImpl();
  if (storage->has_materializer()) return;  // watched already, or a copy on write
  of_thread().push_back(weight.storage().getWeakStorageImpl());
  watched().insert(storage);
  storage->set_materializer(&written);
}

bool is_watched(const at::Tensor& weight) {
  const std::lock_guard held(mutex);
  return watched().contains(weight.storage().unsafeGetStorageImpl());
}

void end_watches() {
  const std::lock_guard held(mutex);
  for (const auto& each : of_thread()) {
    const auto storage = each.lock();
    if (storage && watched().erase(storage.get()) > 0) storage->clear_materializer();
  }
  of_thread().clear();
}

}  // namespace xpurt

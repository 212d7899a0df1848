#include "layouts/write_watch.h"

#include <c10/core/StorageImpl.h>

#include <unordered_map>
#include <vector>

#include "host/mutex.h"

namespace xpurt {
namespace {

using c10::StorageImpl;

// Of all threads: storages whose materializer is the one below.
Mutex mutex{Rank::packed_weights};
std::unordered_map<const StorageImpl*, std::shared_ptr<WriteWatch>>& watched() {
  static auto* const leaked =
      new std::unordered_map<const StorageImpl*, std::shared_ptr<WriteWatch>>;
  return *leaked;
}

// Those that this thread watches. The weak references keep the addresses from being
// used again.
std::vector<c10::weak_intrusive_ptr<StorageImpl>>& of_thread() {
  thread_local std::vector<c10::weak_intrusive_ptr<StorageImpl>> found;
  return found;
}

bool end_watch(const StorageImpl* storage, WriteWatch::State as) {
  const auto at = watched().find(storage);
  if (at == watched().end()) return false;
  at->second->end(as);
  watched().erase(at);
  return true;
}

// PyTorch calls it as a materializer, and forgets it.
void written(StorageImpl* storage) {
  const std::lock_guard<Mutex> held(mutex);
  end_watch(storage, WriteWatch::State::written);
}

}  // namespace

std::shared_ptr<const WriteWatch> watch_writes(const at::Tensor& weight) {
  const std::lock_guard<Mutex> held(mutex);
  StorageImpl* storage = weight.storage().unsafeGetStorageImpl();
  if (storage->has_materializer()) {
    // It is watched already, or a copy on write.
    const auto at = watched().find(storage);
    return at == watched().end() ? nullptr : at->second;
  }
  of_thread().push_back(weight.storage().getWeakStorageImpl());
  storage->set_materializer(&written);
  return watched()[storage] = std::make_shared<WriteWatch>();
}

void end_watches() {
  const std::lock_guard<Mutex> held(mutex);
  for (const auto& each : of_thread()) {
    const auto storage = each.lock();
    if (storage && end_watch(storage.get(), WriteWatch::State::over)) {
      storage->clear_materializer();
    }
  }
  of_thread().clear();
}

}  // namespace xpurt

#include "memory/known_storages.h"

#include <c10/util/intrusive_ptr.h>

#include <unordered_map>

#include "host/mutex.h"
#include "memory/lazy_memory.h"
#include "stream/capture.h"

namespace xpurt {
namespace {

// Storages whose pointer other code has, for as long as the storages live.
struct KnownStorages {
  using Weak = c10::weak_intrusive_ptr<c10::StorageImpl>;
  Mutex mutex{Rank::known_storages};
  std::unordered_map<const c10::StorageImpl*, Weak> storages;
  size_t swept = 64;  // at this size, entries of freed storages are dropped

  void add(const c10::StorageImpl& storage) {
    auto* impl = const_cast<c10::StorageImpl*>(&storage);
    c10::raw::intrusive_ptr::incref(impl);
    Weak weak(c10::intrusive_ptr<c10::StorageImpl>::reclaim(impl));
    const std::lock_guard<Mutex> lock(mutex);
    storages.insert_or_assign(impl, std::move(weak));
    if (storages.size() < swept) return;
    std::erase_if(storages, [](const auto& each) { return each.second.expired(); });
    swept = 2 * storages.size() + 64;
  }
  bool has(const c10::StorageImpl& storage) {
    const std::lock_guard<Mutex> lock(mutex);
    const auto found = storages.find(&storage);
    return found != storages.end() && !found->second.expired();
  }
};

KnownStorages& known_storages() {
  static KnownStorages* const leaked = new KnownStorages;
  return *leaked;
}

}  // namespace

void never_copy_lazily(const c10::StorageImpl& storage) {
  known_storages().add(storage);
}

bool is_never_copied_lazily(const c10::StorageImpl& storage) {
  return known_storages().has(storage);
}

// A graph keeps the address, and its replays write there without the storage.
void known_to_graph(const at::TensorBase& tensor) {
  if (!tensor.has_storage()) return;
  const c10::StorageImpl& storage = *tensor.storage().unsafeGetStorageImpl();
  if (is_lazy(storage)) {
    refuse_in_capture(
        "work on a lazy copy, or on what was copied lazily,",
        "the first write moves it to other memory. Make it private before "
        "the capture: tensor.data_ptr()");
  }
  never_copy_lazily(storage);
}

}  // namespace xpurt

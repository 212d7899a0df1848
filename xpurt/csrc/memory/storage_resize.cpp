#include "memory/storage_resize.h"

#include "device/device_scope.h"
#include "memory/allocator.h"
#include "memory/replica/replica.h"

namespace xpurt {

void resize_storage(const c10::Storage& storage, size_t bytes) {
  TORCH_CHECK(storage.resizable(), "Trying to resize storage that is not resizable");
  const c10::DeviceIndex index = storage.device().index();
  const DeviceScope scope(index);
  c10::StorageImpl* impl = storage.unsafeGetStorageImpl();
  c10::DataPtr made = device_allocator().allocate(bytes);
  const size_t kept = std::min(bytes, impl->nbytes());
  if (kept > 0) {
    Stream& stream = current_stream(index);
    bring_home(*impl, Access::read);
    stream.home_queue()->memcpy(made.get(), impl->data(), kept);
    stream.wait();  // the old memory is freed below
  }
  impl->clear_materializer();  // of a copy-on-write storage: the new memory is its own
  impl->set_data_ptr_noswap(std::move(made));
  impl->set_nbytes(bytes);
}

}  // namespace xpurt

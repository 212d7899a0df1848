// Host tensors on devices whose memory the host cannot read: see
// Note [Host tensors].
#include <c10/core/CPUAllocator.h>

#include "device/device_scope.h"
#include "memory/allocator.h"
#include "memory/cpu_allocator.h"
#include "native/alias.h"
#include "stream/stream.h"
#include "stream/work_recording.h"

namespace xpurt {
namespace {

void copy_on_queue(c10::DeviceIndex index, void* to, const void* from, size_t bytes) {
  Stream& stream = current_stream(index);
  const sycl::event done = stream.home_queue()->memcpy(to, from, bytes);
  record_work(stream, stream.ordinal().home, done, DeviceWork::copy(bytes));
}

}  // namespace

void HostCall::stage(HostStorage& storage) {
  const c10::StorageImpl* original = storage.original.unsafeGetStorageImpl();
  storage.end = std::min(storage.end, original->nbytes());
  storage.begin = std::min(storage.begin, storage.end);
  const size_t bytes = storage.end - storage.begin;
  c10::Allocator& allocator = switching_allocator();
  storage.host = c10::Storage(c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(), bytes, &allocator, original->resizable()));
  if (bytes == 0) return;
  const auto* from = static_cast<const char*>(original->data()) + storage.begin;
  copy_on_queue(storage.original.device().index(), storage.host.mutable_data(), from,
                bytes);
  bytes_copied_ += bytes;
}

void HostCall::write_back(HostStorage& storage) {
  const size_t bytes = storage.end - storage.begin;
  if (bytes == 0) return;
  const c10::DeviceIndex index = storage.original.device().index();
  auto* to = static_cast<char*>(storage.original.mutable_data()) + storage.begin;
  copy_on_queue(index, to, storage.host.data(), bytes);
  // The host's bytes are freed when the op ends.
  current_stream(index).wait();
  bytes_copied_ += bytes;
}

c10::Storage HostCall::upload(const c10::Storage& storage) {
  const DeviceScope scope(device_.index());
  const size_t bytes = storage.nbytes();
  c10::Storage made(c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(), bytes, &device_allocator(), true));
  if (bytes == 0) return made;
  copy_on_queue(device_.index(), made.mutable_data(), storage.data(), bytes);
  current_stream(device_.index()).wait();
  bytes_copied_ += bytes;
  return made;
}

}  // namespace xpurt

// Host tensors on devices whose memory the host cannot read: see
// Note [Host tensors].
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty.h>
#include <c10/core/CPUAllocator.h>

#include "device/device_scope.h"
#include "memory/allocator.h"
#include "memory/cpu_allocator.h"
#include "memory/element_span.h"
#include "native/host_call.h"
#include "stream/stream.h"
#include "stream/work_recording.h"

namespace xpurt {
namespace {

void copy_on_queue(c10::DeviceIndex index, void* to, const void* from, size_t bytes) {
  Stream& stream = current_stream(index);
  const sycl::event done = stream.home_queue()->memcpy(to, from, bytes);
  record_work(stream, stream.ordinal().home, done, DeviceWork::copy(bytes));
}

// While one lives, this thread copies elements to the device. An op that it calls for
// that, and that ends up on the host, must not do the same again.
struct WritesElements {
  WritesElements() { is_under_way = true; }
  ~WritesElements() { is_under_way = false; }
  static inline thread_local bool is_under_way = false;
};

// Copies the elements of a tensor from its host form, and no byte between them: the
// bytes go to memory of the device, and a kernel moves the elements. `skipped`: bytes
// of the storage before those of the host form. Returns the bytes copied.
size_t write_elements(const ExchangedTensor& each, size_t skipped) {
  const at::Tensor& to = each.own;
  if (to.numel() == 0) return 0;
  const Interval span = element_span(*to.unsafeGetTensorImpl());
  const size_t bytes = span.size();
  const c10::DeviceIndex index = to.device().index();
  const auto* from =
      static_cast<const char*>(each.other.storage().data()) + (span.begin - skipped);
  if (to.is_non_overlapping_and_dense()) {
    auto* memory = static_cast<char*>(to.storage().mutable_data());
    copy_on_queue(index, memory + span.begin, from, bytes);
    return bytes;
  }
  const at::AutoDispatchBelowADInplaceOrView as_a_kernel;
  const DeviceScope scope(index);
  const at::Tensor room = at::empty({static_cast<int64_t>(bytes)},
                                    at::device(to.device()).dtype(at::kByte));
  copy_on_queue(index, room.storage().mutable_data(), from, bytes);
  const at::Tensor moved = at::detail::make_tensor<c10::TensorImpl>(
      c10::TensorImpl::VIEW, c10::Storage(room.storage()), to.key_set(), to.dtype());
  // All elements along an expanded dimension are one in memory.
  c10::SmallVector<int64_t, 5> sizes(to.sizes());
  for (int64_t d = 0; d < to.dim(); ++d) {
    if (to.stride(d) == 0) sizes[d] = 1;
  }
  moved.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, to.strides(), 0);
  to.as_strided(sizes, to.strides()).copy_(moved);
  return bytes;
}

}  // namespace

void HostCall::stage(ExchangedStorage& storage) {
  const c10::StorageImpl* own = storage.own.unsafeGetStorageImpl();
  storage.end = std::min(storage.end, own->nbytes());
  storage.begin = std::min(storage.begin, storage.end);
  const size_t bytes = storage.end - storage.begin;
  c10::Allocator& allocator = switching_allocator();
  storage.other = c10::Storage(c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(), bytes, &allocator, own->resizable()));
  if (bytes == 0) return;
  const auto* from = static_cast<const char*>(own->data()) + storage.begin;
  copy_on_queue(storage.own.device().index(), storage.other.mutable_data(), from,
                bytes);
  bytes_copied_ += bytes;
}

// Another thread may write to other bytes of the storage meanwhile, such as those
// between the elements of a column. So only elements of written tensors are copied
// back, if nothing else has changed.
void HostCall::write_back(ExchangedStorage& storage) {
  const size_t bytes = storage.end - storage.begin;
  if (bytes == 0) return;
  const c10::DeviceIndex index = storage.own.device().index();
  const auto written = written_in(storage);
  if (!written.empty() && !WritesElements::is_under_way) {
    const WritesElements under_way;
    for (const ExchangedTensor* each : written) {
      bytes_copied_ += write_elements(*each, storage.begin);
    }
  } else {
    auto* to = static_cast<char*>(storage.own.mutable_data()) + storage.begin;
    copy_on_queue(index, to, storage.other.data(), bytes);
    bytes_copied_ += bytes;
  }
  // The host's bytes are freed when the op ends.
  current_stream(index).wait();
}

c10::Storage HostCall::upload(const c10::Storage& storage) {
  const DeviceScope scope(own_.index());
  const size_t bytes = storage.nbytes();
  c10::Storage made(c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(), bytes, &device_allocator(), true));
  if (bytes == 0) return made;
  copy_on_queue(own_.index(), made.mutable_data(), storage.data(), bytes);
  current_stream(own_.index()).wait();
  bytes_copied_ += bytes;
  return made;
}

}  // namespace xpurt

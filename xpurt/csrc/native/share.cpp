#include "native/share.h"

#include <ATen/EmptyTensor.h>
#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>

#include <atomic>
#include <cstring>
#include <map>

#include "host/errors.h"
#include "host/mutex.h"
#include "memory/allocator.h"
#include "memory/known_storages.h"
#include "memory/replica/replica.h"
#include "memory/usm_extent.h"
#include "stream/stream.h"

namespace xpurt {
namespace {

std::atomic<size_t> borrowed_storages{0};
std::atomic<size_t> borrowed_bytes{0};

// Borrowed memory by its first byte, for ordinal_of_borrowed(). The same bytes may be
// borrowed several times.
struct Borrowed {
  const char* end;
  c10::DeviceIndex index;
};
struct Extents {
  Mutex mutex{Rank::borrowed_memory};
  std::multimap<const char*, Borrowed> by_begin;
};
Extents& extents() {
  static Extents* const leaked = new Extents;
  return *leaked;
}

// The owner of the bytes of a borrowed storage. Work that reads them may still be
// queued when the last tensor is freed: the owner is released after that work.
struct Owner {
  std::function<void()> release;
  c10::Storage lender;  // of a CPU tensor that owns the bytes
  size_t bytes;
  c10::DeviceIndex index;
  std::multimap<const char*, Borrowed>::iterator extent;

  static void destroy(void* context) {
    std::unique_ptr<Owner> owner(static_cast<Owner*>(context));
    {
      std::lock_guard<Mutex> lock(extents().mutex);
      extents().by_begin.erase(owner->extent);
    }
    --borrowed_storages;
    borrowed_bytes -= owner->bytes;
    try {
      if (!in_bad_fork()) synchronize_device(owner->index);
    } catch (const std::exception& error) {
      TORCH_WARN("work on shared memory failed: ", error.what());
    }
    if (owner->release) owner->release();
  }
};

c10::Storage borrow(void* data, size_t bytes, c10::DeviceIndex index,
                    std::function<void()> release, c10::Storage lender = {}) {
  const uint64_t epoch = placement().epoch;
  ordinal(index);
  ++borrowed_storages;
  borrowed_bytes += bytes;
  auto* owner = new Owner{std::move(release), std::move(lender), bytes, index, {}};
  {
    const auto* begin = static_cast<const char*>(data);
    std::lock_guard<Mutex> lock(extents().mutex);
    owner->extent = extents().by_begin.emplace(begin, Borrowed{begin + bytes, index});
  }
  c10::DataPtr pointer(data, owner, &Owner::destroy,
                       c10::Device(c10::DeviceType::XPU, index));
  if (!is_installed(epoch)) {  // see Note [Use and change]
    throw_mapping_error(
        "another thread has changed the xpu mapping meanwhile. Try again.");
  }
  return c10::Storage(c10::Storage::use_byte_size_t(), bytes, std::move(pointer),
                      &device_allocator(), /*resizable=*/false);
}

at::Tensor on(c10::Storage storage, c10::DispatchKey key, const at::Tensor& like) {
  auto result = at::detail::make_tensor<c10::TensorImpl>(
      std::move(storage), c10::DispatchKeySet(key), like.dtype());
  result.unsafeGetTensorImpl()->set_sizes_and_strides(like.sizes(), like.strides(),
                                                      like.storage_offset());
  if (like.is_conj()) result.unsafeGetTensorImpl()->_set_conj(true);
  if (like.is_neg()) result.unsafeGetTensorImpl()->_set_neg(true);
  return result;
}

void check_dense(const at::Tensor& tensor) {
  TORCH_CHECK_TYPE(tensor.defined() && tensor.layout() == at::kStrided &&
                       !tensor.is_quantized() && tensor.has_storage(),
                   "a dense tensor can be shared; found one of layout ",
                   tensor.layout());
}

// Raises ValueError if `bytes` extends beyond the end of the allocation: on some
// devices a read there ends the process.
void check_extent(const void* data, size_t bytes, c10::DeviceIndex index) {
  if (bytes == 0) return;
  const Extent found = usm_extent(data, ordinal(index).home_device());
  if (found.start == nullptr) return;
  const size_t behind =
      static_cast<const char*>(data) - static_cast<const char*>(found.start);
  TORCH_CHECK_VALUE(bytes <= found.bytes - behind, "the array reaches over ", bytes,
                    " bytes, but the allocation that it names ends after ",
                    found.bytes - behind,
                    ". Its shape, strides or dtype do not belong to its memory.");
}

// Fixes the size of a shared storage: growing would move it to other memory and free
// the shared memory.
void stay_as_large(const c10::Storage& storage) {
  storage.unsafeGetStorageImpl()->set_resizable(false);
}

c10::Storage borrow_from(const at::Tensor& cpu, c10::DeviceIndex index) {
  const PhysicalDevice& home = ordinal(index).home_device();
  TORCH_CHECK(home.system_usm, "the bytes of a CPU tensor cannot be shared with xpu:",
              static_cast<int>(index), ": ", home.name,
              " cannot read memory of the host. Copy it: tensor.to(\"xpu:",
              static_cast<int>(index), "\").");
  c10::Storage source = cpu.storage();
  // Also makes a copy-on-write storage private: later writes would not be isolated.
  void* data = source.mutable_data();
  const size_t bytes = source.nbytes();
  stay_as_large(source);
  return borrow(data, bytes, index, {}, std::move(source));
}

}  // namespace

at::Tensor share_with_xpu(const at::Tensor& cpu, c10::DeviceIndex index) {
  check_dense(cpu);
  if (index < 0) index = current_device();
  return on(borrow_from(cpu, index), c10::DispatchKey::XPU, cpu);
}

void move_to_memory_of(const at::Tensor& xpu, const at::Tensor& cpu) {
  check_dense(xpu);
  check_dense(cpu);
  const c10::Storage& storage = xpu.storage();
  c10::StorageImpl* impl = storage.unsafeGetStorageImpl();
  const c10::DeviceIndex index = storage.device().index();
  TORCH_CHECK_VALUE(cpu.storage().nbytes() == impl->nbytes(), "the memory has ",
                    cpu.storage().nbytes(), " bytes, and the storage ", impl->nbytes());
  // Another storage, a graph or another library would keep the old memory.
  TORCH_CHECK(impl->resizable() && !is_never_copied_lazily(*impl),
              "the memory of a tensor on xpu:", static_cast<int>(index),
              " has to stay where it is, since other code uses it at its address: "
              "xpurt.share(), a graph or another library. Use tensor.clone().");
  // Its bytes may change at any time: no lazy copy may have them.
  never_copy_lazily(*impl);
  c10::Storage moved = borrow_from(cpu, index);
  const void* old = impl->mutable_data();  // of a lazy copy: memory of its own
  escape(*impl);
  synchronize_device(index);
  std::memcpy(moved.mutable_data(), old, impl->nbytes());
  impl->clear_materializer();
  impl->set_data_ptr_noswap(std::move(moved.mutable_data_ptr()));
  impl->set_resizable(false);
}

at::Tensor lender_of(const at::Tensor& xpu) {
  check_dense(xpu);
  const c10::DataPtr& data = xpu.storage().data_ptr();
  if (data.get_deleter() != &Owner::destroy) return {};
  const c10::Storage& lender = static_cast<Owner*>(data.get_context())->lender;
  if (!lender) return {};
  auto bytes = at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(lender), c10::DispatchKeySet(c10::DispatchKey::CPU),
      caffe2::TypeMeta::Make<uint8_t>());
  bytes.unsafeGetTensorImpl()->set_sizes_contiguous(
      static_cast<int64_t>(lender.nbytes()));
  return bytes;
}

at::Tensor share_with_cpu(const at::Tensor& xpu) {
  check_dense(xpu);
  const c10::DeviceIndex index = xpu.device().index();
  const PhysicalDevice& home = ordinal(index).home_device();
  TORCH_CHECK(home.host_accessible,
              "the bytes of a tensor on xpu:", static_cast<int>(index),
              " cannot be shared with the CPU: the host cannot "
              "read the memory of ",
              home.name, ". Copy it: tensor.cpu().");
  c10::Storage source = xpu.storage();
  void* data = source.mutable_data();
  escape(*source.unsafeGetStorageImpl());
  current_stream(index).wait();
  const size_t bytes = source.nbytes();
  stay_as_large(source);
  auto* kept = new c10::Storage(std::move(source));
  c10::DataPtr pointer(
      data, kept, [](void* context) { delete static_cast<c10::Storage*>(context); },
      c10::Device(c10::DeviceType::CPU));
  c10::Storage storage(c10::Storage::use_byte_size_t(), bytes, std::move(pointer),
                       c10::GetCPUAllocator(), /*resizable=*/false);
  return on(std::move(storage), c10::DispatchKey::CPU, xpu);
}

at::Tensor around_usm(void* data, at::IntArrayRef sizes, at::IntArrayRef strides,
                      at::ScalarType dtype, c10::DeviceIndex index,
                      std::function<void()> owner_release) {
  const size_t bytes = at::detail::computeStorageNbytes(
      sizes, strides, c10::scalarTypeToTypeMeta(dtype).itemsize());
  check_extent(data, bytes, index);
  auto result = at::detail::make_tensor<c10::TensorImpl>(
      borrow(data, bytes, index, std::move(owner_release)),
      c10::DispatchKeySet(c10::DispatchKey::XPU), c10::scalarTypeToTypeMeta(dtype));
  result.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides);
  return result;
}

c10::DeviceIndex ordinal_of_usm(const void* pointer, const sycl::context* context) {
  const Placement& now = placement();
  const auto is_at_home = [&](const PhysicalDevice& home) {
    // Some drivers report memory of every context as known, but kernels must not use
    // it, unless the device reads every address of the host.
    if (context != nullptr && *context != home.context && !home.system_usm)
      return false;
    const auto kind = sycl::get_pointer_type(pointer, home.context);
    if (kind == sycl::usm::alloc::unknown) return false;
    return kind == sycl::usm::alloc::host ||
           sycl::get_pointer_device(pointer, home.context) == home.device;
  };
  // The current ordinal has precedence: under a launcher all have the same devices.
  const c10::DeviceIndex current = current_device();
  if (is_at_home(ordinal(current).home_device())) return current;
  for (size_t i = 0; i < now.ordinals.size(); ++i) {
    if (is_at_home(now.ordinals[i].home_device())) {
      return static_cast<c10::DeviceIndex>(i);
    }
  }
  return -1;
}

c10::DeviceIndex ordinal_of_borrowed(const void* pointer) noexcept {
  const auto* byte = static_cast<const char*>(pointer);
  std::lock_guard<Mutex> lock(extents().mutex);
  for (const auto& [begin, extent] : extents().by_begin) {
    if (begin > byte) break;
    if (byte < extent.end || byte == begin) return extent.index;
  }
  return -1;
}

BorrowedMemory borrowed_memory() noexcept {
  return {borrowed_storages.load(), borrowed_bytes.load()};
}

}  // namespace xpurt

#include "dispatch/lazy_conversion.h"

#include <ATen/ops/_to_copy_native.h>
#include <torch/library.h>

#include <atomic>

#include "device/device.h"
#include "dispatch/copy.h"
#include "memory/allocator.h"
#include "memory/known_storages.h"
#include "memory/lazy_memory.h"
#include "memory/pinned.h"
#include "native/alias.h"
#include "native/lazy_copy.h"
#include "op/op_report.h"
#include "stream/capture.h"
#include "stream/stream.h"

namespace xpurt {
namespace {

std::atomic<bool> on_in_process{false};
thread_local Lazy on_here = Lazy::unset;

// Whether only this tensor, and lazy copies of it, use the memory. Views and DLPack
// hold a reference to the storage, numpy and share() fix its size, and borrowed memory
// has a context.
bool is_unknown(const c10::StorageImpl& storage) {
  const c10::DataPtr& data = storage.data_ptr();
  const bool plain = data.get_context() == data.get() && !storage.has_materializer();
  return (plain || is_lazy(storage)) && storage.resizable() &&
         storage.allocator() != nullptr && !is_never_copied_lazily(storage) &&
         (storage.device_type() == c10::DeviceType::XPU ? !is_private(data.get())
                                                        : !is_pinned(data.get()));
}

bool covers_storage(const at::Tensor& tensor) {
  return is_dense(tensor) && tensor.numel() > 0 &&
         tensor.nbytes() == tensor.storage().nbytes();
}

std::optional<at::Tensor> lazily(const at::Tensor& self, c10::Device device) {
  const bool up = device.is_xpu();
  if (up ? !self.is_cpu() : !(self.is_xpu() && device.is_cpu())) return std::nullopt;
  if (!is_plain(self) || !self.has_storage() || !covers_storage(self)) {
    return std::nullopt;
  }
  c10::DeviceIndex index = up ? device.index() : self.device().index();
  if (index < 0) index = current_device();
  c10::StorageImpl& storage = *self.storage().unsafeGetStorageImpl();
  if (!ordinal(index).shares_memory_with_host() || self.storage().use_count() != 1 ||
      !is_unknown(storage) || capture_is_underway()) {
    return std::nullopt;
  }
  static OpRecord& record =
      op_record(c10::Dispatcher::singleton().findSchemaOrThrow("aten::_to_copy", ""));
  const uint64_t begin = ticks_now();
  if (!up) {
    // Queued work may still write to the memory, on this stream and on streams that
    // this one waits for.
    current_stream(index).wait();
  }
  const c10::Device target =
      up ? c10::Device(c10::DeviceType::XPU, index) : c10::Device(c10::DeviceType::CPU);
  auto made = at::detail::make_tensor<c10::TensorImpl>(
      lazy_copy(storage, target),
      c10::DispatchKeySet(up ? c10::DispatchKey::XPU : c10::DispatchKey::CPU),
      self.dtype());
  made.unsafeGetTensorImpl()->set_sizes_and_strides(self.sizes(), self.strides());
  count_op(record, Tier::native, ordinal(index).home_device().id, ticks_now() - begin,
           0);
  return made;
}

at::Tensor to_copy(const at::Tensor& self, std::optional<c10::ScalarType> dtype,
                   std::optional<c10::Layout> layout, std::optional<c10::Device> device,
                   std::optional<bool> pin_memory, bool non_blocking,
                   std::optional<c10::MemoryFormat> format) {
  const bool same = dtype.value_or(self.scalar_type()) == self.scalar_type() &&
                    layout.value_or(c10::kStrided) == c10::kStrided &&
                    !pin_memory.value_or(false);
  if (same && device && lazy_copies()) {
    const auto wanted = format.value_or(c10::MemoryFormat::Preserve);
    if (wanted == c10::MemoryFormat::Preserve || self.is_contiguous(wanted)) {
      if (auto made = lazily(self, *device)) return *std::move(made);
    }
  }
  return at::native::_to_copy(self, dtype, layout, device, pin_memory, non_blocking,
                              format);
}

// Replaces _to_copy at the first request for lazy copies, so that other programs keep
// PyTorch's own kernels.
void take_conversions() {
  static const bool taken = [] {
    for (const auto key : {c10::DispatchKey::CPU, c10::DispatchKey::XPU}) {
      auto* kept =
          new torch::Library(torch::Library::IMPL, "aten", key, __FILE__, __LINE__);
      kept->impl("_to_copy", TORCH_FN(to_copy));
    }
    return true;
  }();
  (void)taken;
}

}  // namespace

Lazy exchange_lazy_copies(Lazy value) {
  if (value == Lazy::on) take_conversions();
  return std::exchange(on_here, value);
}

void set_lazy_copies_of_process(bool on) {
  if (on) take_conversions();
  on_in_process = on;
}

bool lazy_copies() {
  return on_here == Lazy::unset ? on_in_process.load(std::memory_order_relaxed)
                                : on_here == Lazy::on;
}

}  // namespace xpurt

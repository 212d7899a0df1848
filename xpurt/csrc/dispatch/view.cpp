// The ops that change only a tensor's sizes, strides, offset, type or storage.
#include <ATen/Context.h>
#include <ATen/native/Resize.h>
#include <ATen/native/ResizeCommon.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>
#include <torch/library.h>

#include "device/device_scope.h"
#include "memory/allocator.h"
#include "memory/storage_resize.h"

namespace xpurt {
namespace {

void set_layout(const at::Tensor& self, c10::IntArrayRef size,
                c10::IntArrayRef stride) {
  c10::TensorImpl* impl = self.unsafeGetTensorImpl();
  const bool contiguous = stride.data() == nullptr;
  if (c10::multiply_integers(size) != 0) {
    const size_t item = impl->dtype().itemsize();
    const size_t bytes = contiguous ? at::detail::computeStorageNbytesContiguous(
                                          size, item, impl->storage_offset())
                                    : at::detail::computeStorageNbytes(
                                          size, stride, item, impl->storage_offset());
    // First, so that a tensor whose storage cannot grow remains unchanged.
    if (bytes > impl->unsafe_storage().nbytes()) {
      resize_storage(impl->unsafe_storage(), bytes);
    }
  }
  if (contiguous) {
    impl->set_sizes_contiguous(size);
  } else {
    impl->set_sizes_and_strides(size, stride);
  }
}

const at::Tensor& resize(const at::Tensor& self, c10::IntArrayRef size,
                         std::optional<c10::MemoryFormat> memory_format) {
  at::detail::check_size_nonnegative(size);
  const size_t bytes_before = self.storage().nbytes();
  if (self.sizes() != size) set_layout(self, size, {});
  if (memory_format.has_value()) {
    TORCH_CHECK(*memory_format != c10::MemoryFormat::Preserve,
                "Unsupported memory format ", *memory_format);
    self.unsafeGetTensorImpl()->empty_tensor_restride(*memory_format);
  }
  const at::Context& context = at::globalContext();
  if (C10_UNLIKELY(context.deterministicAlgorithms() &&
                   context.deterministicFillUninitializedMemory())) {
    at::native::fill_resize_deterministic_(self, static_cast<int64_t>(bytes_before));
  }
  return self;
}

at::Tensor& set_storage(at::Tensor& self, c10::Storage source, int64_t offset,
                        c10::IntArrayRef size, c10::IntArrayRef stride) {
  TORCH_CHECK(source.device() == self.device(),
              "Attempted to set the storage of a tensor on device \"", self.device(),
              "\" to a storage on different device \"", source.device(),
              "\". This is no longer allowed; the devices must match.");
  at::native::checkSetStorage(self, std::move(source), offset, size, stride);
  self.unsafeGetTensorImpl()->set_storage_offset(offset);
  set_layout(self, size, stride);
  return self;
}

at::Tensor& set_whole_storage(at::Tensor& self, c10::Storage source) {
  const auto elements = static_cast<int64_t>(source.nbytes() / self.dtype().itemsize());
  return set_storage(self, std::move(source), 0, elements, {});
}

at::Tensor& set_nothing(at::Tensor& self) {
  const DeviceScope scope(self.device().index());
  c10::Storage nothing(c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(), 0, &device_allocator(), true));
  return set_storage(self, std::move(nothing), 0, {0}, {});
}

TORCH_LIBRARY_IMPL(aten, XPU, m) {
  m.impl("as_strided", TORCH_FN(at::native::as_strided_tensorimpl));
  m.impl("view", TORCH_FN(at::native::view));
  m.impl("_reshape_alias", TORCH_FN(at::native::_reshape_alias));
  m.impl("unfold", TORCH_FN(at::native::unfold));
  m.impl("view_as_real", TORCH_FN(at::native::view_as_real));
  m.impl("view_as_complex", TORCH_FN(at::native::view_as_complex));
  m.impl("resize_", TORCH_FN(resize));
  m.impl("set_.source_Storage", TORCH_FN(set_whole_storage));
  m.impl("set_.source_Storage_storage_offset", TORCH_FN(set_storage));
  m.impl("set_.source_Tensor", TORCH_FN(at::native::set_tensor_));
  m.impl("set_", TORCH_FN(set_nothing));
}

}  // namespace
}  // namespace xpurt

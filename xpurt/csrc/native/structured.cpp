#include "native/structured.h"

#include <ATen/EmptyTensor.h>

#include "memory/allocator.h"
#include "memory/cpu_allocator.h"
#include "memory/replica/replica.h"
#include "native/host_bytes.h"
#include "stream/stream.h"

namespace xpurt {
namespace {

bool is_number(const c10::TensorImpl& tensor) {
  const auto dtype = c10::typeMetaToScalarType(tensor.dtype());
  return tensor.is_wrapped_number() && tensor.dim() == 0 &&
         (dtype == c10::ScalarType::Double || dtype == c10::ScalarType::Long);
}

template <typename Number>
const at::Tensor& tensor_with(Number value) {
  // It stays, so it must not be in device memory, which a native kernel would get now.
  thread_local const at::Tensor holder = [] {
    const ResultsOnDevice on_device(false);
    return at::detail::empty_cpu({}, c10::CppTypeToScalarType<Number>::value, false,
                                 std::nullopt);
  }();
  *static_cast<Number*>(holder.mutable_data_ptr()) = value;
  return holder;
}

template <typename Number>
const at::Tensor& converted_to(const at::Tensor& tensor) {
  const void* data = tensor.const_data_ptr();
  return tensor.scalar_type() == c10::ScalarType::Double
             ? tensor_with(static_cast<Number>(*static_cast<const double*>(data)))
             : tensor_with(static_cast<Number>(*static_cast<const int64_t*>(data)));
}

}  // namespace

void StructuredOperands::record(const at::Tensor& tensor, bool written) {
  const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  if (!impl.is_xpu()) {
    fit_ = fit_ && first_ != nullptr && is_number(impl);
    return;
  }
  seen_.push_back({&impl, written});
  if (first_ != nullptr) {
    fit_ = fit_ && impl.dtype() == first_->dtype() && impl.sizes() == first_->sizes();
    return;
  }
  first_ = &impl;
  fit_ = fit_ && (impl.dtype() == caffe2::TypeMeta::Make<float>() ||
                  impl.dtype() == caffe2::TypeMeta::Make<double>());
}

void StructuredOperands::wait(Stream& stream) {
  Uses pending;
  for (const Seen& seen : seen_) {
    ready_for_host(*seen.tensor->unsafe_storage().unsafeGetStorageImpl(), seen.tensor,
                   seen.written, &writes_, &pending);
  }
  stream.wait_for(pending);
}

const at::Tensor& StructuredOperands::converted(const at::Tensor& tensor) const {
  if (C10_LIKELY(tensor.unsafeGetTensorImpl()->is_xpu())) return tensor;
  return first_->dtype() == caffe2::TypeMeta::Make<float>()
             ? converted_to<float>(tensor)
             : converted_to<double>(tensor);
}

const at::Tensor& number_beside(const at::Tensor& tensor, double number) {
  return tensor.dtype() == caffe2::TypeMeta::Make<float>()
             ? tensor_with(static_cast<float>(number))
             : tensor_with(number);
}

at::Tensor make_result(c10::IntArrayRef sizes, c10::IntArrayRef strides,
                       const c10::TensorOptions& options, Stream* stream) {
  const auto dtype = c10::typeMetaToScalarType(options.dtype());
  constexpr c10::DispatchKeySet keys(c10::DispatchKey::XPU);
  c10::Allocator* allocator = &device_allocator();
  at::Tensor made =
      strides.empty()
          ? at::detail::empty_generic(sizes, allocator, keys, dtype,
                                      options.memory_format_opt())
          : at::detail::empty_strided_generic(sizes, strides, allocator, keys, dtype);
  // The wait comes after the allocation: see allocate_for_host().
  if (stream == nullptr) stream = &current_stream(options.device().index());
  if (C10_UNLIKELY(!stream->idle())) {
    wait_for_new_memory(made.const_data_ptr(), made.nbytes(), *stream);
  }
  return made;
}

}  // namespace xpurt

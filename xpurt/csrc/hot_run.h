// What the hot ops have in common, whatever their signature. See Note [Hot ops].
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <string>
#include <vector>

#include "device_scope.h"
#include "op_report.h"
#include "row_choice.h"

namespace xpurt {

// What a hot op learns from its operands.
class HotOperands {
 public:
  void see(const at::Tensor& tensor, bool written) {
    const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
    if (&impl == c10::UndefinedTensorImpl::singleton()) return;
    const c10::Device device = impl.device();
    if (C10_LIKELY(device.is_xpu())) {
      odd_ |= index_ >= 0 && index_ != device.index();
      index_ = device.index();
      if (C10_LIKELY(!impl.key_set().has_any(kOddKeys))) {
        call_.look.see(impl);
        odd_ |= impl.dtype() == kComplexHalf;
        if (first_ == nullptr) first_ = &impl;
        if (seen_ < kSeen) {
          storages_[seen_] = impl.unsafe_storage().unsafeGetStorageImpl();
        }
        ++seen_;
      } else {
        odd_ = true;
      }
    } else {
      odd_ |= !device.is_cpu() || impl.dim() > 0 || written;
      call_.look.see(impl);
    }
  }

  void see_dims(c10::IntArrayRef dims) {
    if (first_ != nullptr) call_.look.see_dims(*first_, dims);
  }

  void see_line(size_t dims) {
    if (first_ != nullptr) call_.look.see_line(*first_, dims);
  }

  void see_channels() {
    if (first_ != nullptr) call_.look.see_channels(*first_);
  }

  c10::DeviceIndex index() const { return index_; }

  // Whether the op is for PyTorch's CPU kernel, on the very bytes of its operands.
  bool run_on_host(const OpRecord& record) {
    return C10_LIKELY(is_plain()) && goes_native(record);
  }

  // Runs an op that is not from a stack, with what was found out of it.
  void run_boxed(OpRecord& record, c10::DispatchKeySet keys,
                 torch::jit::Stack* stack) const;

 private:
  // Tensors that are not sizes and strides over one storage, or not its values.
  static constexpr c10::DispatchKeySet kOddKeys{
      c10::DispatchKey::Sparse,    c10::DispatchKey::SparseCsr,
      c10::DispatchKey::Quantized, c10::DispatchKey::NestedTensor,
      c10::DispatchKey::Conjugate, c10::DispatchKey::Negative,
      c10::DispatchKey::ZeroTensor};

  // A type that most of PyTorch's CPU kernels refuse.
  static inline const caffe2::TypeMeta kComplexHalf =
      caffe2::TypeMeta::fromScalarType(c10::ScalarType::ComplexHalf);

  // Whether the operands are tensors of one ordinal, and what goes with them.
  bool is_plain() const { return index_ >= 0 && !odd_; }
  bool goes_native(const OpRecord& record);

  c10::DeviceIndex index_ = -1;
  bool odd_ = false;  // some operand is not what hot ops are for
  InspectedCall call_;
  const c10::TensorImpl* first_ = nullptr;
  // Where the operands are is asked on ordinals of several devices alone.
  static constexpr size_t kSeen = 4;
  std::array<const c10::StorageImpl*, kSeen> storages_;
  size_t seen_ = 0;
};

// One run of a hot op on the current device, counted if it comes to its end.
class HotRun {
 public:
  HotRun(OpRecord& record, c10::DeviceIndex index)
      : record_(record), index_(index), begin_(ticks_now()), scope_(index) {}

  void done() const;

 private:
  OpRecord& record_;
  const c10::DeviceIndex index_;
  const uint64_t begin_;
  const DeviceScope scope_;
};

// Every op that has a function of its own: "aten::add.Tensor".
std::vector<std::string>& hot_ops();

}  // namespace xpurt

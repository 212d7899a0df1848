// The part of unboxed ops that does not depend on their signature. See Note [Unboxed
// ops].
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "device/device_scope.h"
#include "dispatch/row_choice.h"
#include "op/op_report.h"
#include "stream/stream.h"

namespace xpurt {

// The properties that an unboxed op finds out about its operands.
class UnboxedOperands {
 public:
  void record(const at::Tensor& tensor, bool written) {
    const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
    if (&impl == c10::UndefinedTensorImpl::singleton()) return;
    const c10::Device device = impl.device();
    if (C10_LIKELY(device.is_xpu())) {
      unsupported_ |= index_ >= 0 && index_ != device.index();
      index_ = device.index();
      if (C10_LIKELY(!impl.key_set().has_any(kUnsupportedKeys))) {
        call_.signature.record(impl);
        unsupported_ |= impl.dtype() == kComplexHalf;
        if (first_ == nullptr) first_ = &impl;
        if (storage_count_ < kMaxStorages) {
          storages_[storage_count_] = impl.unsafe_storage().unsafeGetStorageImpl();
        }
        ++storage_count_;
      } else {
        unsupported_ = true;
      }
    } else {
      unsupported_ |= !device.is_cpu() || impl.dim() > 0 || written;
      call_.signature.record(impl);
    }
  }

  void record_dims(c10::IntArrayRef dims) {
    if (first_ != nullptr) call_.signature.record_dims(*first_, dims);
  }

  void record_line(size_t dims) {
    if (first_ != nullptr) call_.signature.record_line(*first_, dims);
  }

  void record_channels() {
    if (first_ != nullptr) call_.signature.record_channels(*first_);
  }

  c10::DeviceIndex index() const { return index_; }

  // The ordinal, after run_on_host().
  const Ordinal& ordinal() const { return *ordinal_; }

  // Whether PyTorch's CPU kernel runs the op, on the operands' own bytes.
  bool run_on_host(const OpRecord& record) {
    return C10_LIKELY(is_plain()) && goes_native(record);
  }

  // Runs any other call from a stack, with the properties that were found.
  void run_boxed(OpRecord& record, c10::DispatchKeySet keys,
                 torch::jit::Stack* stack) const;

 private:
  // Keys of tensors that are not plain, or whose values are not the storage's values.
  static constexpr c10::DispatchKeySet kUnsupportedKeys{
      c10::DispatchKey::Sparse,    c10::DispatchKey::SparseCsr,
      c10::DispatchKey::Quantized, c10::DispatchKey::NestedTensor,
      c10::DispatchKey::Conjugate, c10::DispatchKey::Negative,
      c10::DispatchKey::ZeroTensor};

  // A type that most of PyTorch's CPU kernels reject.
  static inline const caffe2::TypeMeta kComplexHalf =
      caffe2::TypeMeta::fromScalarType(c10::ScalarType::ComplexHalf);

  // Whether the operands are plain tensors of one ordinal, and CPU scalars beside them.
  bool is_plain() const { return index_ >= 0 && !unsupported_; }
  bool goes_native(const OpRecord& record);

  c10::DeviceIndex index_ = -1;
  const Ordinal* ordinal_ = nullptr;
  bool unsupported_ = false;  // some operand is not supported by unboxed ops
  InspectedCall call_;
  const c10::TensorImpl* first_ = nullptr;
  // Used on ordinals of several devices only, to check where the operands are valid.
  static constexpr size_t kMaxStorages = 4;
  std::array<const c10::StorageImpl*, kMaxStorages> storages_;
  size_t storage_count_ = 0;
};

// One run of an unboxed op on the current device; done() counts it.
class UnboxedRun {
 public:
  UnboxedRun(OpRecord& record, c10::DeviceIndex index, const Ordinal& on)
      : record_(record),
        device_id_(on.home_device().id),
        begin_(ticks_now()),
        stream_(current_stream(index)) {
    const c10::DeviceIndex before = current_device();
    if (C10_UNLIKELY(before != index)) scope_.emplace(index);
  }

  Stream& stream() const { return stream_; }

  void done() const {
    count_op(record_, Tier::native, device_id_, ticks_now() - begin_, 0);
  }

 private:
  OpRecord& record_;
  const int device_id_;
  const uint64_t begin_;
  Stream& stream_;
  std::optional<DeviceScope> scope_;  // none if the device is the current one
};

// The names of all unboxed ops, such as "aten::add.Tensor".
std::vector<std::string>& unboxed_ops();

// The names of those that have a direct form, and whether these forms are used: see
// Note [Direct forms].
std::vector<std::string>& direct_ops();
inline std::atomic<bool> uses_direct_forms{true};  // false in tests only

}  // namespace xpurt

// PyTorch's structured CPU kernels, run on xpu tensors directly.
#pragma once

#include <ATen/TensorIterator.h>
#include <ATen/core/Tensor.h>
#include <c10/util/SmallVector.h>

#include "memory/replica/host_writes.h"

namespace xpurt {

class Stream;

// Note [Structured ops on xpu tensors]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// A structured pointwise op of PyTorch has two parts. meta() determines the result's
// sizes, strides and type, on tensors of any device. impl() computes the result, with
// the kernel of the device that meta() found. If the host can read the operands' bytes,
// only that device has to be changed. So meta() runs on the xpu tensors, the device in
// its state is set to the CPU, and impl() does the rest: no CPU tensor is made, and the
// result is an xpu tensor from the start.
//
// On the CPU, meta() converts operands to a common dtype; on other devices it leaves
// that to the kernel. So the operands have to have one dtype, with Python numbers
// converted beforehand. They also have to have one shape, so that nothing is resized.
template <typename Native>
class Structured final : public Native {
 public:
  // `result`: the tensor to write to, or nullptr for a new one. `stream`: the current
  // one, if it is known.
  explicit Structured(const at::Tensor* result, Stream* stream = nullptr)
      : result_(result), stream_(stream) {}

  const at::Tensor& maybe_get_output(int64_t) override {
    return result_ != nullptr ? *result_ : made_;
  }
  void set_output_raw_strided(int64_t i, c10::IntArrayRef sizes,
                              c10::IntArrayRef strides,
                              c10::TensorOptions options) override;
  void set_output_strided(int64_t i, c10::IntArrayRef sizes, c10::IntArrayRef strides,
                          c10::TensorOptions options) override {
    set_output_raw_strided(i, sizes, strides, options);
  }

  template <typename... Args>
  at::Tensor run(Args&&... args) {
    Native::meta(args...);
    const c10::Device cpu(c10::DeviceType::CPU);
    this->common_device_ = cpu;
    for (at::OperandInfo& operand : this->operands_) operand.device = cpu;
    Native::impl(args..., maybe_get_output(0));
    return std::move(made_);
  }

 private:
  const at::Tensor* result_;
  Stream* stream_;
  at::Tensor made_;
};

// The operands of a structured call.
class StructuredOperands {
 public:
  void record(const at::Tensor& tensor, bool written);
  template <typename Other>
  void record(const Other&, bool) {}

  // Whether a structured call can take them.
  bool fit() const { return fit_ && first_ != nullptr; }

  // Waits until the operands' bytes can be used on the host.
  void wait(Stream& stream);

  // The tensor. A wrapped Python number is converted to the dtype of the other
  // operands; the result is then valid until the next call.
  const at::Tensor& converted(const at::Tensor& tensor) const;

 private:
  struct Seen {
    const c10::TensorImpl* tensor;
    bool written;
  };
  const c10::TensorImpl* first_ = nullptr;
  bool fit_ = true;
  c10::SmallVector<Seen, 4> seen_;
  HostWrites writes_;
};

// A Python number as the operand beside a tensor of float or double, converted to the
// tensor's dtype. Valid until the next call.
const at::Tensor& number_beside(const at::Tensor& tensor, double number);

// A new tensor of the current device that the host may write to. `stream`: the current
// one, if it is known.
at::Tensor make_result(c10::IntArrayRef sizes, c10::IntArrayRef strides,
                       const c10::TensorOptions& options, Stream* stream = nullptr);

template <typename Native>
void Structured<Native>::set_output_raw_strided(int64_t i, c10::IntArrayRef sizes,
                                                c10::IntArrayRef strides,
                                                c10::TensorOptions options) {
  if (result_ == nullptr) made_ = make_result(sizes, strides, options, stream_);
  Native::set_output_raw_strided(i, sizes, strides, options);
}

}  // namespace xpurt

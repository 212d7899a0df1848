// PyTorch's structured CPU kernels, on xpu tensors themselves.
#pragma once

#include <ATen/TensorIterator.h>
#include <ATen/core/Tensor.h>
#include <c10/util/SmallVector.h>

namespace xpurt {

// Note [Structured ops on xpu tensors]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// A structured pointwise op of PyTorch has two parts: meta() finds out what the result
// looks like, on tensors of any device, and impl() computes it, with the kernel of the
// device that meta() found. Where the operands' bytes are the host's, too, nothing is
// missing but the name of that device. So meta() is run on the xpu tensors, is then
// told that they are the CPU's, and impl() does the rest: no CPU tensor is made, and
// the result is an xpu tensor from the start.
//
// On the CPU, meta() converts operands to a common dtype, elsewhere it leaves that to
// the kernel. So this is for operands of one dtype, with Python's numbers converted
// beforehand; and for one shape, so that nothing is left to be resized.
template <typename Native>
class Structured final : public Native {
 public:
  // `result` is the tensor that is written to, or nullptr for a new one.
  explicit Structured(const at::Tensor* result) : result_(result) {}

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
  at::Tensor made_;
};

// The operands of such a call.
class StructuredOperands {
 public:
  void record(const at::Tensor& tensor, bool written);
  template <typename Other>
  void record(const Other&, bool) {}

  // Whether they are what structured calls are for.
  bool fit() const { return fit_ && first_ != nullptr; }

  // Waits until their bytes can be used on the host.
  void wait() const;

  // The tensor, or the Python number that it holds in the dtype of the others. Valid
  // until the next call.
  const at::Tensor& converted(const at::Tensor& tensor) const;

 private:
  struct Seen {
    const c10::TensorImpl* tensor;
    bool written;
  };
  const c10::TensorImpl* first_ = nullptr;
  bool fit_ = true;
  c10::SmallVector<Seen, 4> seen_;
};

// A tensor of the current device, for the host to write to.
at::Tensor make_result(c10::IntArrayRef sizes, c10::IntArrayRef strides,
                       const c10::TensorOptions& options);

template <typename Native>
void Structured<Native>::set_output_raw_strided(int64_t i, c10::IntArrayRef sizes,
                                                c10::IntArrayRef strides,
                                                c10::TensorOptions options) {
  if (result_ == nullptr) made_ = make_result(sizes, strides, options);
  Native::set_output_raw_strided(i, sizes, strides, options);
}

}  // namespace xpurt

// The direct forms of ops whose structured CPU kernel does not depend on the device of
// its tensors: see Note [Direct forms].
#pragma once

#include <ATen/ops/_log_softmax_backward_data_native.h>
#include <ATen/ops/_log_softmax_native.h>
#include <ATen/ops/_softmax_backward_data_native.h>
#include <ATen/ops/_softmax_native.h>
#include <ATen/ops/mm_native.h>

#include <algorithm>

#include "dispatch/unboxed/direct_form.h"

namespace xpurt {

// The structured kernel of an op, with a result on xpu.
template <typename Native>
class StructuredOnXpu final : public Native {
 public:
  const at::Tensor& maybe_get_output(int64_t) override { return made_; }
  void set_output_raw_strided(int64_t, c10::IntArrayRef sizes, c10::IntArrayRef strides,
                              c10::TensorOptions options) override {
    made_ = make_result(sizes, strides, options);
  }
  void set_output_strided(int64_t i, c10::IntArrayRef sizes, c10::IntArrayRef strides,
                          c10::TensorOptions options) override {
    set_output_raw_strided(i, sizes, strides, options);
  }

  template <typename... Args>
  at::Tensor run(const Args&... args) {
    Native::meta(args...);
    Native::impl(args..., made_);
    return std::move(made_);
  }

 private:
  at::Tensor made_;
};

// The kernel reads contiguous operands only, and would copy others by an op on xpu.
struct DirectSoftmaxFit : DirectForm {
  static bool is_float(const at::Tensor& tensor) {
    const c10::ScalarType type = tensor.scalar_type();
    return type == c10::ScalarType::Float || type == c10::ScalarType::Double;
  }
  static bool fits(const at::Tensor& self, int64_t dim, bool half_to_float) {
    return is_direct_operand(self) && is_float(self) && !half_to_float &&
           -self.dim() <= dim && dim < self.dim();
  }
  static bool fits(const at::Tensor& gradient, const at::Tensor& output, int64_t dim,
                   c10::ScalarType input_type) {
    return fits(output, dim, false) && is_direct_operand(gradient) &&
           gradient.dtype() == output.dtype() && gradient.sizes() == output.sizes() &&
           input_type == output.scalar_type();
  }
};

template <typename Native>
struct DirectSoftmax : DirectSoftmaxFit {
  template <typename... Args>
  static std::optional<at::Tensor> run(const Args&... args) {
    return StructuredOnXpu<Native>().run(args...);
  }
};

struct DirectMm : DirectForm {
  // Whether the product reads the matrix where it lies.
  static bool is_operand(const at::Tensor& matrix) {
    const c10::TensorImpl* impl = matrix.unsafeGetTensorImpl();
    if (!impl->is_xpu() || impl->dim() != 2 || impl->numel() == 0) return false;
    const auto leads = [&](int64_t inner, int64_t outer) {
      return impl->strides()[inner] == 1 &&
             impl->strides()[outer] >= std::max<int64_t>(1, impl->sizes()[inner]);
    };
    return leads(1, 0) || leads(0, 1);
  }
  static bool fits(const at::Tensor& self, const at::Tensor& other) {
    return is_operand(self) && is_operand(other) && DirectSoftmaxFit::is_float(self) &&
           self.dtype() == other.dtype() && self.sizes()[1] == other.sizes()[0];
  }
  static std::optional<at::Tensor> run(const at::Tensor& self,
                                       const at::Tensor& other) {
    return StructuredOnXpu<at::native::structured_mm_out_cpu>().run(self, other);
  }
};

}  // namespace xpurt

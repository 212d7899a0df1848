// Reductions, scans and softmax.
#include "dispatch/complex_nansum.h"
#include "dispatch/unboxed/direct_structured.h"
#include "dispatch/unboxed/unboxed_op.h"

// These headers need the declarations of unboxed_op.h.
#include <ATen/ops/_log_softmax_backward_data_ops.h>
#include <ATen/ops/_log_softmax_ops.h>
#include <ATen/ops/_softmax_backward_data_ops.h>
#include <ATen/ops/_softmax_ops.h>
#include <ATen/ops/all_ops.h>
#include <ATen/ops/amax_ops.h>
#include <ATen/ops/amin_ops.h>
#include <ATen/ops/aminmax_ops.h>
#include <ATen/ops/any_ops.h>
#include <ATen/ops/argmax_ops.h>
#include <ATen/ops/argmin_ops.h>
#include <ATen/ops/cumprod_ops.h>
#include <ATen/ops/cumsum_ops.h>
#include <ATen/ops/linalg_vector_norm_ops.h>
#include <ATen/ops/max_ops.h>
#include <ATen/ops/mean_ops.h>
#include <ATen/ops/median_ops.h>
#include <ATen/ops/min_ops.h>
#include <ATen/ops/nansum_ops.h>
#include <ATen/ops/norm_ops.h>
#include <ATen/ops/prod_ops.h>
#include <ATen/ops/sort_ops.h>
#include <ATen/ops/std_ops.h>
#include <ATen/ops/sum_ops.h>
#include <ATen/ops/topk_ops.h>
#include <ATen/ops/var_mean_ops.h>
#include <ATen/ops/var_ops.h>

namespace xpurt {
namespace {

struct Nansum {
  static at::Tensor redispatch(c10::DispatchKeySet keys, const at::Tensor& self,
                               at::OptionalIntArrayRef dims, bool keepdim,
                               std::optional<c10::ScalarType> dtype) {
    if (C10_UNLIKELY(self.is_complex())) {
      return complex_nansum(self, dims, keepdim, dtype);
    }
    return at::_ops::nansum::redispatch(keys, self, dims, keepdim, dtype);
  }
};

TORCH_LIBRARY_IMPL(aten, XPU, m) {
  unboxed<at::_ops::sum_dim_IntList>(m);
  unboxed<at::_ops::mean_dim>(m);
  unboxed<at::_ops::nansum, void, Nansum>(m);
  unboxed<at::_ops::amax>(m);
  unboxed<at::_ops::amin>(m);
  unboxed<at::_ops::aminmax>(m);
  unboxed<at::_ops::argmax>(m);
  unboxed<at::_ops::argmin>(m);
  unboxed<at::_ops::max>(m);
  unboxed<at::_ops::max_dim>(m);
  unboxed<at::_ops::min>(m);
  unboxed<at::_ops::min_dim>(m);
  unboxed<at::_ops::prod>(m);
  unboxed<at::_ops::prod_dim_int>(m);
  unboxed<at::_ops::all>(m);
  unboxed<at::_ops::all_dim>(m);
  unboxed<at::_ops::any>(m);
  unboxed<at::_ops::any_dim>(m);
  unboxed<at::_ops::var_correction>(m);
  unboxed<at::_ops::std_correction>(m);
  unboxed<at::_ops::var_mean_correction>(m);
  unboxed<at::_ops::linalg_vector_norm>(m);
  unboxed<at::_ops::norm_ScalarOpt_dim>(m);
  unboxed<at::_ops::cumsum>(m);
  unboxed<at::_ops::cumprod>(m);
  unboxed<at::_ops::topk>(m);
  unboxed<at::_ops::sort_stable>(m);
  unboxed<at::_ops::median>(m);
  unboxed<at::_ops::_softmax, DirectSoftmax<at::native::structured_softmax_cpu_out>>(m);
  unboxed<at::_ops::_log_softmax,
          DirectSoftmax<at::native::structured_log_softmax_cpu_out>>(m);
  unboxed<at::_ops::_softmax_backward_data,
          DirectSoftmax<at::native::structured_softmax_backward_cpu_out>>(m);
  unboxed<at::_ops::_log_softmax_backward_data,
          DirectSoftmax<at::native::structured_log_softmax_backward_cpu_out>>(m);
}

}  // namespace
}  // namespace xpurt

#include "op/meta/structured_metas.h"

#include <ATen/MetaFunctions.h>
#include <ATen/Operators.h>

#include <algorithm>
#include <string_view>
#include <vector>

namespace xpurt {
namespace {

template <typename Op, typename Op::schema* function>
StructuredMeta of() {
  using Function = c10::CompileTimeFunctionPointer<typename Op::schema, function>;
  return {Op::name, Op::overload_name,
          c10::KernelFunction::makeFromUnboxedFunction(Function())};
}

// One line per function.
// clang-format off
const std::vector<StructuredMeta>& all() {
  static const auto* const leaked = new std::vector<StructuredMeta>{
    of<at::_ops::cumsum, &at::meta::cumsum>(),
    of<at::_ops::cumsum_, &at::meta::cumsum_>(),
    of<at::_ops::cumprod, &at::meta::cumprod>(),
    of<at::_ops::cumprod_, &at::meta::cumprod_>(),
    of<at::_ops::max_pool2d_with_indices, &at::meta::max_pool2d_with_indices>(),
    of<at::_ops::max_pool2d_with_indices_backward, &at::meta::max_pool2d_with_indices_backward>(),
    of<at::_ops::avg_pool2d, &at::meta::avg_pool2d>(),
    of<at::_ops::avg_pool2d_backward, &at::meta::avg_pool2d_backward>(),
    of<at::_ops::adaptive_max_pool2d, &at::meta::adaptive_max_pool2d>(),
    of<at::_ops::adaptive_max_pool2d_backward, &at::meta::adaptive_max_pool2d_backward>(),
    of<at::_ops::avg_pool3d, &at::meta::avg_pool3d>(),
    of<at::_ops::avg_pool3d_backward, &at::meta::avg_pool3d_backward>(),
    of<at::_ops::adaptive_max_pool3d, &at::meta::adaptive_max_pool3d>(),
    of<at::_ops::adaptive_max_pool3d_backward, &at::meta::adaptive_max_pool3d_backward>(),
    of<at::_ops::upsample_nearest1d, &at::meta::upsample_nearest1d_symint>(),
    of<at::_ops::upsample_nearest1d_backward, &at::meta::upsample_nearest1d_backward_symint>(),
    of<at::_ops::_upsample_nearest_exact1d, &at::meta::_upsample_nearest_exact1d_symint>(),
    of<at::_ops::_upsample_nearest_exact1d_backward, &at::meta::_upsample_nearest_exact1d_backward_symint>(),
    of<at::_ops::upsample_nearest2d, &at::meta::upsample_nearest2d_symint>(),
    of<at::_ops::upsample_nearest2d_backward, &at::meta::upsample_nearest2d_backward_symint>(),
    of<at::_ops::_upsample_nearest_exact2d, &at::meta::_upsample_nearest_exact2d_symint>(),
    of<at::_ops::_upsample_nearest_exact2d_backward, &at::meta::_upsample_nearest_exact2d_backward_symint>(),
    of<at::_ops::upsample_nearest3d, &at::meta::upsample_nearest3d_symint>(),
    of<at::_ops::upsample_nearest3d_backward, &at::meta::upsample_nearest3d_backward_symint>(),
    of<at::_ops::_upsample_nearest_exact3d, &at::meta::_upsample_nearest_exact3d_symint>(),
    of<at::_ops::_upsample_nearest_exact3d_backward, &at::meta::_upsample_nearest_exact3d_backward_symint>(),
    of<at::_ops::upsample_linear1d, &at::meta::upsample_linear1d_symint>(),
    of<at::_ops::upsample_linear1d_backward, &at::meta::upsample_linear1d_backward_symint>(),
    of<at::_ops::upsample_bilinear2d, &at::meta::upsample_bilinear2d_symint>(),
    of<at::_ops::upsample_bilinear2d_backward, &at::meta::upsample_bilinear2d_backward_symint>(),
    of<at::_ops::upsample_trilinear3d, &at::meta::upsample_trilinear3d_symint>(),
    of<at::_ops::upsample_trilinear3d_backward, &at::meta::upsample_trilinear3d_backward_symint>(),
    of<at::_ops::upsample_bicubic2d, &at::meta::upsample_bicubic2d_symint>(),
    of<at::_ops::upsample_bicubic2d_backward, &at::meta::upsample_bicubic2d_backward_symint>(),
    of<at::_ops::glu, &at::meta::glu>(),
    of<at::_ops::addmv, &at::meta::addmv>(),
    of<at::_ops::addmv_, &at::meta::addmv_>(),
    of<at::_ops::linalg_vector_norm, &at::meta::linalg_vector_norm>(),
    of<at::_ops::norm_ScalarOpt_dim, &at::meta::norm>(),
    of<at::_ops::norm_ScalarOpt_dim_dtype, &at::meta::norm>(),
    of<at::_ops::polygamma, &at::meta::polygamma>(),
    of<at::_ops::sort_stable, &at::meta::sort>(),
    of<at::_ops::topk, &at::meta::topk_symint>(),
    of<at::_ops::isin_Tensor_Tensor, &at::meta::isin>(),
    of<at::_ops::isin_Tensor_Scalar, &at::meta::isin>(),
    of<at::_ops::isin_Scalar_Tensor, &at::meta::isin>(),
    of<at::_ops::argmax, &at::meta::argmax>(),
    of<at::_ops::argmin, &at::meta::argmin>(),
    of<at::_ops::max_dim, &at::meta::max>(),
    of<at::_ops::min_dim, &at::meta::min>(),
    of<at::_ops::aminmax, &at::meta::aminmax>(),
    of<at::_ops::tril, &at::meta::tril_symint>(),
    of<at::_ops::tril_, &at::meta::tril__symint>(),
    of<at::_ops::triu, &at::meta::triu_symint>(),
    of<at::_ops::triu_, &at::meta::triu__symint>(),
    of<at::_ops::cat, &at::meta::cat>(),
    of<at::_ops::reflection_pad1d, &at::meta::reflection_pad1d_symint>(),
    of<at::_ops::reflection_pad3d, &at::meta::reflection_pad3d_symint>(),
    of<at::_ops::replication_pad1d, &at::meta::replication_pad1d_symint>(),
    of<at::_ops::replication_pad2d, &at::meta::replication_pad2d_symint>(),
    of<at::_ops::replication_pad3d, &at::meta::replication_pad3d_symint>(),
    of<at::_ops::reflection_pad1d_backward, &at::meta::reflection_pad1d_backward_symint>(),
    of<at::_ops::reflection_pad3d_backward, &at::meta::reflection_pad3d_backward_symint>(),
    of<at::_ops::replication_pad1d_backward, &at::meta::replication_pad1d_backward_symint>(),
    of<at::_ops::gather, &at::meta::gather>(),
    of<at::_ops::index_Tensor, &at::meta::index>(),
    of<at::_ops::scatter_value, &at::meta::scatter>(),
    of<at::_ops::scatter_src, &at::meta::scatter>(),
    of<at::_ops::scatter_reduce, &at::meta::scatter>(),
    of<at::_ops::scatter_value_reduce, &at::meta::scatter>(),
    of<at::_ops::scatter__src, &at::meta::scatter_>(),
    of<at::_ops::scatter__value, &at::meta::scatter_>(),
    of<at::_ops::scatter__reduce, &at::meta::scatter_>(),
    of<at::_ops::scatter__value_reduce, &at::meta::scatter_>(),
    of<at::_ops::scatter_add, &at::meta::scatter_add>(),
    of<at::_ops::scatter_add_, &at::meta::scatter_add_>(),
    of<at::_ops::scatter_reduce_two, &at::meta::scatter_reduce>(),
    of<at::_ops::scatter_reduce__two, &at::meta::scatter_reduce_>(),
    of<at::_ops::index_add, &at::meta::index_add>(),
    of<at::_ops::index_add_, &at::meta::index_add_>(),
    of<at::_ops::index_copy, &at::meta::index_copy>(),
    of<at::_ops::index_copy_, &at::meta::index_copy_>(),
    of<at::_ops::index_reduce, &at::meta::index_reduce>(),
    of<at::_ops::index_reduce_, &at::meta::index_reduce_>(),
    of<at::_ops::nll_loss_forward, &at::meta::nll_loss_forward_symint>(),
    of<at::_ops::nll_loss_backward, &at::meta::nll_loss_backward_symint>(),
    of<at::_ops::mse_loss, &at::meta::mse_loss>(),
    of<at::_ops::smooth_l1_loss, &at::meta::smooth_l1_loss>(),
    of<at::_ops::linalg_cross, &at::meta::linalg_cross>(),
    of<at::_ops::linalg_cholesky_ex, &at::meta::linalg_cholesky_ex>(),
    of<at::_ops::linalg_inv_ex, &at::meta::linalg_inv_ex>(),
    of<at::_ops::linalg_lu, &at::meta::linalg_lu>(),
    of<at::_ops::linalg_lu_factor_ex, &at::meta::linalg_lu_factor_ex>(),
    of<at::_ops::linalg_lu_solve, &at::meta::linalg_lu_solve>(),
    of<at::_ops::_linalg_det, &at::meta::_linalg_det>(),
    of<at::_ops::_linalg_slogdet, &at::meta::_linalg_slogdet>(),
    of<at::_ops::_linalg_solve_ex, &at::meta::_linalg_solve_ex>(),
    of<at::_ops::lu_unpack, &at::meta::lu_unpack>(),
    of<at::_ops::triangular_solve, &at::meta::triangular_solve>(),
    of<at::_ops::renorm, &at::meta::renorm>(),
    of<at::_ops::renorm_, &at::meta::renorm_>(),
  };
  return *leaked;
}
// clang-format on

using Arguments = std::vector<const c10::Argument*>;

Arguments inputs_of(const c10::FunctionSchema& schema) {
  Arguments inputs;
  for (const c10::Argument& each : schema.arguments()) {
    if (!each.is_out()) inputs.push_back(&each);
  }
  return inputs;
}

bool have_same_inputs(const c10::FunctionSchema& one,
                      const c10::FunctionSchema& other) {
  return std::ranges::equal(inputs_of(one), inputs_of(other),
                            [](const c10::Argument* a, const c10::Argument* b) {
                              return a->name() == b->name() && *a->type() == *b->type();
                            });
}

}  // namespace

const StructuredMeta* structured_meta(const c10::FunctionSchema& schema) {
  for (const StructuredMeta& each : all()) {
    if (schema.name() != each.name) continue;
    const auto& of = c10::Dispatcher::singleton()
                         .findSchemaOrThrow(each.name, each.overload)
                         .schema();
    if (have_same_inputs(of, schema)) return &each;
  }
  return nullptr;
}

}  // namespace xpurt

// Meta functions in place of those that PyTorch lacks, or has in Python without the CPU
// kernel's checks. Where one throws, the message is that of the CPU kernel.
#include <ATen/native/cpu/mixed_data_type.h>
#include <ATen/native/layer_norm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <c10/core/WrapDimMinimal.h>

#include "op/meta_call.h"

namespace xpurt {
namespace {

using at::Tensor;
using torch::jit::Stack;

// PyTorch's meta function of native_layer_norm imports its compiler, which takes a
// second.
std::vector<Tensor> layer_norm_results(const Stack& metas) {
  const Tensor& input = metas[0].toTensor();
  const auto normalized = metas[1].toIntVector();
  const Tensor weight = metas[2].toOptional<Tensor>().value_or(Tensor());
  const Tensor bias = metas[3].toOptional<Tensor>().value_or(Tensor());
  at::native::_check_layer_norm_inputs(input, normalized, weight, bias);
  if (at::native::is_mixed_type(input, weight, bias)) {
    at::native::check_mixed_data_type(input, weight, bias);
  }
  auto sizes = input.sizes().vec();
  std::fill(sizes.end() - static_cast<int64_t>(normalized.size()), sizes.end(), 1);
  const Tensor of_rows = at::empty(sizes, input.options());
  return {at::empty(input.sizes(), input.options()), of_rows, of_rows};
}

// PyTorch's meta function of a median along a dimension refuses deterministic mode, as
// CUDA's kernel does.
std::vector<Tensor> median_results(const Stack& metas) {
  const Tensor& input = metas[0].toTensor();
  if (metas.size() == 1) return {at::empty({}, input.options())};
  const int64_t dim = c10::maybe_wrap_dim(metas[1].toInt(), input.dim());
  auto sizes = input.sizes().vec();
  if (!sizes.empty()) sizes[dim] = 1;
  if (!sizes.empty() && !metas[2].toBool()) sizes.erase(sizes.begin() + dim);
  return {at::empty(sizes, input.options()),
          at::empty(sizes, input.options().dtype(at::kLong))};
}

// PyTorch's imports its compiler, too.
std::vector<Tensor> dot_results(const Stack& metas) {
  const Tensor& one = metas[0].toTensor();
  const Tensor& other = metas[1].toTensor();
  TORCH_CHECK(one.dim() == 1 && one.sizes() == other.sizes() &&
                  one.scalar_type() == other.scalar_type(),
              "dot: two vectors of one size and type are wanted");
  return {at::empty({}, one.options())};
}

// PyTorch's has no check.
std::vector<Tensor> put_results(const Stack& metas) {
  TORCH_CHECK_INDEX(metas[1].toTensor().numel() == metas[2].toTensor().numel(),
                    "put: the source has another number of elements than the index");
  return {at::empty_like(metas[0].toTensor())};
}

// PyTorch's takes any dimension of a number.
std::vector<Tensor> index_select_results(const Stack& metas) {
  const Tensor& input = metas[0].toTensor();
  const Tensor& index = metas[2].toTensor();
  const int64_t dim = c10::maybe_wrap_dim(metas[1].toInt(), input.dim());
  TORCH_CHECK_INDEX(index.dim() <= 1, "index_select: the index is not a vector");
  TORCH_CHECK(input.dim() > 0 || index.numel() == 1,
              "index_select: several of a number");
  auto sizes = input.sizes().vec();
  if (!sizes.empty()) sizes[dim] = index.numel();
  return {at::empty(sizes, input.options())};
}

// A label for each pixel. PyTorch's checks the batch alone.
void check_labels(const Tensor& image, const Tensor& target,
                  const c10::IValue& weight) {
  TORCH_CHECK(
      image.dim() == 4 && target.dim() == 3 && image.size(0) == target.size(0) &&
          image.size(2) == target.size(1) && image.size(3) == target.size(2),
      "nll_loss: a target of ", target.sizes(), " for an input of ", image.sizes());
  TORCH_CHECK(!weight.isTensor() || !weight.toTensor().defined() ||
                  weight.toTensor().numel() == image.size(1),
              "nll_loss: a weight of ", image.size(1), " classes is wanted");
}

std::vector<Tensor> nll_loss2d_results(const Stack& metas) {
  const Tensor& image = metas[0].toTensor();
  const Tensor& target = metas[1].toTensor();
  check_labels(image, target, metas[2]);
  const bool is_reduced = metas[3].toInt() != at::Reduction::None;
  const Tensor number = at::empty({}, image.options());
  return {is_reduced ? number : at::empty(target.sizes(), image.options()), number};
}

std::vector<Tensor> nll_loss2d_gradient(const Stack& metas) {
  check_labels(metas[1].toTensor(), metas[2].toTensor(), metas[3]);
  return {at::empty_like(metas[1].toTensor())};
}

std::vector<Tensor> as_second(const Stack& metas) {
  return {at::empty_like(metas[1].toTensor())};
}

// PyTorch's has no check.
std::vector<Tensor> embedding_gradient(const Stack& metas) {
  const Tensor& gradient = metas[0].toTensor();
  const Tensor& indices = metas[1].toTensor();
  const int64_t width = gradient.size(-1);
  TORCH_CHECK(gradient.numel() == indices.numel() * width,
              "embedding_dense_backward: a gradient of ", gradient.sizes(), " for ",
              indices.numel(), " indices");
  return {at::empty({metas[2].toInt(), width}, gradient.options())};
}

// Nor has this.
std::vector<Tensor> unfold_gradient(const Stack& metas) {
  const Tensor& gradient = metas[0].toTensor();
  const Tensor folded = at::empty(metas[1].toIntVector(), gradient.options());
  const Tensor windows =
      folded.unfold(metas[2].toInt(), metas[3].toInt(), metas[4].toInt());
  TORCH_CHECK(gradient.sizes() == windows.sizes(), "unfold_backward: a gradient of ",
              gradient.sizes(), " for windows of ", windows.sizes());
  return {folded};
}

const bool registered = register_meta_functions({
    {"aten::native_layer_norm", &layer_norm_results},
    {"aten::median", &median_results},
    {"aten::nanmedian", &median_results},
    {"aten::dot", &dot_results},
    {"aten::vdot", &dot_results},
    {"aten::index_select", &index_select_results},
    {"aten::put", &put_results},
    {"aten::put_", &put_results},
    {"aten::embedding_dense_backward", &embedding_gradient},
    {"aten::unfold_backward", &unfold_gradient},
    {"aten::nll_loss2d_forward", &nll_loss2d_results},
    {"aten::nll_loss2d_backward", &nll_loss2d_gradient},
    {"aten::multi_margin_loss_backward", &as_second},
    {"aten::multilabel_margin_loss_backward", &as_second},
});

}  // namespace
}  // namespace xpurt

// The ops of torch.nn.SyncBatchNorm, by other ops. PyTorch has them for GPUs alone.
//
// Each rank computes the mean and the deviation of its part of a batch. The statistics
// of the whole are combined as by Chan, Golub, LeVeque (1979). Sizes: N samples, C
// channels, which are dimension 1 of a tensor.
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/var_mean.h>
#include <torch/library.h>

namespace xpurt {
namespace {

using at::Tensor;
using MaybeTensor = std::optional<Tensor>;

// Half precision is accumulated in single precision, as by the other batch norms.
at::ScalarType statistics_type(const Tensor& input) {
  return input.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

std::vector<int64_t> all_but_channels(const Tensor& input) {
  std::vector<int64_t> dims;
  for (int64_t d = 0; d < input.dim(); ++d) {
    if (d != 1) dims.push_back(d);
  }
  return dims;
}

// A value per channel, of size (C), against `input`.
Tensor per_channel(const Tensor& values, const Tensor& input) {
  std::vector<int64_t> sizes(input.dim(), 1);
  sizes[1] = values.numel();
  return values.to(statistics_type(input)).view(sizes);
}

// The factor of each channel.
Tensor scale_of(const Tensor& invstd, const MaybeTensor& weight) {
  if (!weight || !weight->defined()) return invstd;
  return invstd * weight->to(invstd.scalar_type());
}

std::tuple<Tensor, Tensor> batch_norm_stats(const Tensor& input, double eps) {
  const auto [var, mean] =
      at::var_mean(input.to(statistics_type(input)), all_but_channels(input),
                   /*correction=*/at::Scalar(0), /*keepdim=*/false);
  return {mean, at::rsqrt(var + eps)};
}

Tensor batch_norm_elemt(const Tensor& input, const MaybeTensor& weight,
                        const MaybeTensor& bias, const Tensor& mean,
                        const Tensor& invstd, double) {
  Tensor result =
      (input - per_channel(mean, input)) * per_channel(scale_of(invstd, weight), input);
  if (bias && bias->defined()) result = result + per_channel(*bias, input);
  return result.to(input.scalar_type());
}

// `means`, `invstds`: (ranks, C). `counts`: (ranks), the elements per channel.
std::tuple<Tensor, Tensor> gather_stats_with_counts(const Tensor&, const Tensor& means,
                                                    const Tensor& invstds,
                                                    const MaybeTensor& running_mean,
                                                    const MaybeTensor& running_var,
                                                    double momentum, double eps,
                                                    const Tensor& counts) {
  TORCH_CHECK(counts.dim() == 1 && means.dim() == 2 && counts.size(0) == means.size(0),
              "batch_norm_gather_stats_with_counts expects a count per rank, but got "
              "counts of size ",
              counts.sizes(), " beside means of size ", means.sizes());
  const Tensor n = counts.to(means.scalar_type()).view({-1, 1});
  const Tensor total = n.sum();
  const Tensor mean = (means * n).sum(0) / total;
  const Tensor vars = invstds.pow(-2) - eps;
  const Tensor squares = ((vars + (means - mean).square()) * n).sum(0);
  if (running_mean && running_mean->defined()) {
    running_mean->mul_(1 - momentum)
        .add_(mean.to(running_mean->scalar_type()), momentum);
  }
  if (running_var && running_var->defined()) {
    const Tensor unbiased = squares / (total - 1);
    running_var->mul_(1 - momentum)
        .add_(unbiased.to(running_var->scalar_type()), momentum);
  }
  return {mean, at::rsqrt(squares / total + eps)};
}

std::tuple<Tensor, Tensor, Tensor, Tensor> backward_reduce(
    const Tensor& grad, const Tensor& input, const Tensor& mean, const Tensor& invstd,
    const MaybeTensor& weight, bool needs_input, bool needs_weight, bool needs_bias) {
  const auto dims = all_but_channels(input);
  const Tensor wide = grad.to(statistics_type(input));
  const Tensor sum = at::sum(wide, dims);
  const Tensor product = at::sum(wide * (input - per_channel(mean, input)), dims);
  const auto type =
      weight && weight->defined() ? weight->scalar_type() : sum.scalar_type();
  return {needs_input ? sum : Tensor(), needs_input ? product : Tensor(),
          needs_weight ? (product * invstd).to(type) : Tensor(),
          needs_bias ? sum.to(type) : Tensor()};
}

// `sum`, `product`: the results of backward_reduce, summed over all ranks.
Tensor backward_elemt(const Tensor& grad, const Tensor& input, const Tensor& mean,
                      const Tensor& invstd, const MaybeTensor& weight,
                      const Tensor& sum, const Tensor& product, const Tensor& counts) {
  const Tensor total = counts.sum().to(sum.scalar_type());
  const Tensor slope = product / total * invstd.square();
  const Tensor result =
      (grad - per_channel(sum / total, input) -
       (input - per_channel(mean, input)) * per_channel(slope, input)) *
      per_channel(scale_of(invstd, weight), input);
  return result.to(input.scalar_type());
}

TORCH_LIBRARY_IMPL(aten, XPU, m) {
  m.impl("batch_norm_stats", &batch_norm_stats);
  m.impl("batch_norm_elemt", &batch_norm_elemt);
  m.impl("batch_norm_gather_stats_with_counts", &gather_stats_with_counts);
  m.impl("batch_norm_backward_reduce", &backward_reduce);
  m.impl("batch_norm_backward_elemt", &backward_elemt);
}

}  // namespace
}  // namespace xpurt

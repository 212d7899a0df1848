#include "onednn/fused_product.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <c10/util/Exception.h>

#include "onednn/device.h"
#include "onednn/fused_plan.h"

namespace xpurt {
namespace {

using at::Tensor;
using dnnl::memory;
using Dims = memory::dims;

constexpr int64_t kGapBytes = 64;  // see Note [Distances of matrices]

// Of dense matrices by rows.
Layout by_rows(const Dims& sizes, memory::data_type type, int64_t distance = 0) {
  if (sizes.size() == 2) return {sizes, type, Dims{sizes[1], 1}};
  return {sizes, type, Dims{distance, sizes[2], 1}};
}

// oneDNN reads a matrix by rows or by columns.
bool is_by_columns(const Tensor& weight) {
  return weight.dim() == 2 && weight.stride(0) == 1 &&
         weight.stride(1) == weight.size(0);
}

// Whether the matrices of a batch are dense; there may be gaps between them.
bool is_dense(const Tensor& batch) {
  const int64_t rows = batch.size(1), inner = batch.size(2);
  return (inner == 1 || batch.stride(2) == 1) &&
         (rows == 1 || batch.stride(1) == inner) && batch.stride(0) >= rows * inner;
}

Tensor dense_input(const FusedProduct& of) {
  return of.is_batched() && is_dense(of.input) ? of.input : of.input.contiguous();
}

// From a matrix of dense_input() to the next one, in elements; 0 for a single one.
// Copies nothing, since plans are made under a lock.
int64_t input_distance(const FusedProduct& of) {
  if (!of.is_batched()) return 0;
  return is_dense(of.input) ? of.input.stride(0) : of.input.size(1) * of.input.size(2);
}

Tensor dense_weight(const FusedProduct& of) {
  const bool dense = of.is_packed() || is_by_columns(of.weight);
  return dense ? of.weight : of.weight.contiguous();
}

OnednnPlan make_fused(const dnnl::engine& engine, const FusedProduct& of) {
  const auto type = onednn_type(of.input.scalar_type());
  const int64_t columns = of.weight_sizes.back();
  const int64_t inner = of.weight_sizes.rbegin()[1];
  const Layout input = by_rows(of.input.sizes().vec(), type, input_distance(of));
  const Layout output = by_rows(of.output_sizes(), type, of.output_distance());
  const Layout any{of.weight_sizes, type, memory::format_tag::any};
  const Layout bias =
      of.bias.defined() ? by_rows({1, columns}, type) : Layout();  // of each row
  const dnnl::primitive_attr attributes = fused_attributes(of, output);
  const dnnl::matmul::primitive_desc made =
      of.bias.defined()
          ? dnnl::matmul::primitive_desc(engine, input, any, bias, output, attributes,
                                         /*allow_empty=*/true)
          : dnnl::matmul::primitive_desc(engine, input, any, output, attributes,
                                         /*allow_empty=*/true);
  const bool by_columns = !of.is_packed() && is_by_columns(of.weight);
  const Layout weight = by_columns ? Layout{of.weight_sizes, type, Dims{1, inner}}
                                   : by_rows(of.weight_sizes, type, inner * columns);
  return make_fused_plan(engine, "onednn_fused_product", made, of,
                         {input, weight, output, bias});
}

std::shared_ptr<const OnednnPlan> plan_of(OnednnDevice& device,
                                          const FusedProduct& of) {
  const bool by_columns = !of.is_packed() && is_by_columns(of.weight);
  std::string key = fused_key("fused_product", of, by_columns);
  add_to_key(&key, of.input.sizes());
  add_to_key(&key, input_distance(of));
  return device.plan(std::move(key), [&] { return make_fused(device.engine(), of); });
}

template <typename Body>
auto explained(const FusedProduct& of, const Body& body) {
  return onednn_checked(body, "multiply ", of.input.sizes(), " by ",
                        at::IntArrayRef(of.weight_sizes), " (", of.input.scalar_type(),
                        ", ", of.activation.name, ")");
}

}  // namespace

std::vector<int64_t> FusedProduct::output_sizes() const {
  std::vector<int64_t> sizes = input.sizes().vec();
  sizes.back() = weight_sizes.back();
  return sizes;
}

int64_t FusedProduct::output_distance() const {
  if (!is_batched()) return 0;
  return input.size(1) * weight_sizes[2] + kGapBytes / input.element_size();
}

Tensor FusedProduct::empty_output() const {
  const std::vector<int64_t> sizes = output_sizes();
  if (!is_batched()) return at::empty(sizes, input.options());
  return at::empty_strided(sizes, {output_distance(), sizes[2], 1}, input.options());
}

void FusedProduct::check() const {
  const size_t dims = weight_sizes.size();
  TORCH_CHECK_VALUE(
      (dims == 2 || dims == 3) && input.dim() == static_cast<int64_t>(dims),
      "the input and the weight of a product are matrices, or batches");
  TORCH_CHECK_VALUE(input.size(-1) == weight_sizes[dims - 2] &&
                        (!is_batched() || input.size(0) == weight_sizes[0]),
                    "the weight ", at::IntArrayRef(weight_sizes),
                    " does not fit the input ", input.sizes());
  const auto made = output_sizes();
  TORCH_CHECK_VALUE(input.numel() > 0 && weight_sizes.back() > 0, "the product of ",
                    input.sizes(), " and ", at::IntArrayRef(weight_sizes),
                    " has an empty tensor");
  TORCH_CHECK_VALUE(!is_batched() || (!bias.defined() && !other.defined()),
                    "nothing is added to the products of a batch");
  check_sizes(made.back());
  check_other(made);
}

bool onednn_fuses(const PhysicalDevice& device, const FusedProduct& of) {
  const auto type = of.input.scalar_type();
  return c10::isFloatingType(type) && OnednnDevice::of(device).multiplies(type) &&
         explained(of, [&] { return plan_of(OnednnDevice::of(device), of)->possible; });
}

Tensor pack_weight(const FusedProduct& of, size_t position, Stream& stream) {
  OnednnDevice& device = OnednnDevice::of(*stream.ordinal().devices[position]);
  return explained(of, [&] {
    const auto plan = plan_of(device, of);
    return reordered_argument(*plan, kFusedWeight, dense_weight(of), device, stream,
                              position);
  });
}

void onednn_fused(const FusedProduct& of, const Tensor& output, size_t position,
                  Stream& stream) {
  OnednnDevice& device = OnednnDevice::of(*stream.ordinal().devices[position]);
  explained(of, [&] {
    const Tensor other = of.other.defined() ? of.other.contiguous() : of.other;
    const auto tensors =
        fused_tensors(of, dense_input(of), dense_weight(of), output, other);
    run_plan(*plan_of(device, of), device, stream, position, tensors);
    return true;
  });
}

}  // namespace xpurt

#include "onednn/fused_product.h"

#include <c10/util/Exception.h>

#include "onednn/device.h"
#include "onednn/post_ops.h"

namespace xpurt {
namespace {

using at::Tensor;
using dnnl::memory;
using Dims = memory::dims;

Layout by_rows(int64_t rows, int64_t columns, memory::data_type type) {
  return {{rows, columns}, type, Dims{columns, 1}};
}

// oneDNN reads a matrix by rows or by columns.
bool is_by_columns(const Tensor& weight) {
  return weight.stride(0) == 1 && weight.stride(1) == weight.size(0);
}

Tensor dense_weight(const FusedProduct& of) {
  const bool dense = of.is_packed() || is_by_columns(of.weight);
  return dense ? of.weight : of.weight.contiguous();
}

OnednnPlan make_fused(const dnnl::engine& engine, const FusedProduct& of) {
  const auto type = onednn_type(of.input.scalar_type());
  const int64_t rows = of.input.size(0);
  const int64_t inner = of.weight_sizes[0], columns = of.weight_sizes[1];
  const Layout input = by_rows(rows, inner, type);
  const Layout output = by_rows(rows, columns, type);
  const Layout any{{inner, columns}, type, memory::format_tag::any};
  const Layout bias =
      of.bias.defined() ? by_rows(1, columns, type) : Layout();  // of each row
  dnnl::primitive_attr attributes = onednn_attributes();
  attributes.set_post_ops(
      post_ops_of(of.other.defined() ? output : Layout(), of.activation));
  const dnnl::matmul::primitive_desc made =
      of.bias.defined()
          ? dnnl::matmul::primitive_desc(engine, input, any, bias, output, attributes,
                                         /*allow_empty=*/true)
          : dnnl::matmul::primitive_desc(engine, input, any, output, attributes,
                                         /*allow_empty=*/true);
  if (!is_of_use(made)) return {};
  Layout weight = made.weights_desc();
  if (!of.is_packed()) {
    const bool by_columns = is_by_columns(of.weight);
    weight = {{inner, columns}, type, by_columns ? Dims{1, inner} : Dims{columns, 1}};
  }
  std::vector<OnednnPlan::Argument> arguments{{DNNL_ARG_SRC, input, Access::read},
                                              {DNNL_ARG_WEIGHTS, weight, Access::read},
                                              {DNNL_ARG_DST, output, Access::write}};
  if (of.bias.defined()) arguments.push_back({DNNL_ARG_BIAS, bias, Access::read});
  if (of.other.defined()) {
    constexpr int kOther = DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1;
    arguments.push_back({kOther, output, Access::read});
  }
  return make_plan(engine, "onednn_fused_product", made, std::move(arguments));
}

std::shared_ptr<const OnednnPlan> plan_of(OnednnDevice& device,
                                          const FusedProduct& of) {
  std::string key = "fused_product" + of.activation.name;
  add_to_key(&key, of.activation.alpha);
  add_to_key(&key, of.activation.beta);
  add_to_key(&key, of.bias.defined());
  add_to_key(&key, of.other.defined());
  add_to_key(&key, of.is_packed());
  add_to_key(&key, !of.is_packed() && is_by_columns(of.weight));
  add_to_key(&key, of.input.scalar_type());
  add_to_key(&key, of.input.sizes());
  add_to_key(&key, of.weight_sizes);
  return device.plan(std::move(key), [&] { return make_fused(device.engine(), of); });
}

template <typename Body>
auto explained(const FusedProduct& of, const Body& body) {
  return onednn_checked(body, "multiply ", of.input.sizes(), " by ",
                        at::IntArrayRef(of.weight_sizes), " (", of.input.scalar_type(),
                        ", ", of.activation.name, ")");
}

}  // namespace

void FusedProduct::check() const {
  TORCH_CHECK_VALUE(weight_sizes.size() == 2 && input.dim() == 2,
                    "the input and the weight of a product are matrices");
  TORCH_CHECK_VALUE(input.size(1) == weight_sizes[0], "the weight ",
                    at::IntArrayRef(weight_sizes), " does not fit the input ",
                    input.sizes());
  const auto made = output_sizes();
  TORCH_CHECK_VALUE(made[0] > 0 && made[1] > 0 && weight_sizes[0] > 0,
                    "the product of ", input.sizes(), " and ",
                    at::IntArrayRef(weight_sizes), " has an empty tensor");
  TORCH_CHECK_VALUE(is_packed() || weight.sizes() == weight_sizes, "the weight is ",
                    weight.sizes(), ", and its sizes are given as ",
                    at::IntArrayRef(weight_sizes));
  TORCH_CHECK_VALUE(!bias.defined() || bias.sizes() == made[1], "a bias of ", made[1],
                    " elements fits; found ", bias.sizes());
  TORCH_CHECK_VALUE(!other.defined() || other.sizes() == made, "the tensor to add is ",
                    other.sizes(), ", and the product ", at::IntArrayRef(made));
}

bool onednn_fuses(const PhysicalDevice& device, const FusedProduct& of) {
  const auto type = of.input.scalar_type();
  return c10::isFloatingType(type) && OnednnDevice::of(device).multiplies(type) &&
         explained(of, [&] { return plan_of(OnednnDevice::of(device), of)->possible; });
}

Tensor pack_product_weight(const FusedProduct& of, size_t position, Stream& stream) {
  OnednnDevice& device = OnednnDevice::of(*stream.ordinal().devices[position]);
  return explained(of, [&] {
    const auto plan = plan_of(device, of);
    return reordered_argument(*plan, 1, dense_weight(of), device, stream, position);
  });
}

void onednn_fused_product(const FusedProduct& of, const Tensor& output, size_t position,
                          Stream& stream) {
  OnednnDevice& device = OnednnDevice::of(*stream.ordinal().devices[position]);
  explained(of, [&] {
    c10::SmallVector<Tensor, 5> tensors{of.input.contiguous(), dense_weight(of),
                                        output};
    if (of.bias.defined()) tensors.push_back(of.bias.contiguous());
    if (of.other.defined()) tensors.push_back(of.other.contiguous());
    run_plan(*plan_of(device, of), device, stream, position, tensors);
    return true;
  });
}

}  // namespace xpurt

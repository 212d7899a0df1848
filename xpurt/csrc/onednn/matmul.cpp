#include "onednn/matmul.h"

#include <c10/util/Exception.h>

#include <algorithm>

#include "onednn/device.h"

namespace xpurt {
namespace {

using at::Tensor;
using c10::ScalarType;

Layout describe(const Tensor& tensor) {
  dnnl::memory::dims sizes = tensor.sizes().vec(), strides = tensor.strides().vec();
  const MatrixStrides of_matrix = matrix_strides(tensor);
  strides[strides.size() - 2] = of_matrix.row;
  strides.back() = of_matrix.column;
  // In PyTorch the stride of a dimension of one element can be any number, but oneDNN
  // orders dimensions by strides.
  int64_t extent = 1;
  for (size_t i = 0; i < sizes.size(); ++i) {
    extent = std::max(extent, sizes[i] * strides[i]);
  }
  for (size_t i = 0; i + 2 < sizes.size(); ++i) {
    if (sizes[i] == 1) strides[i] = extent;
  }
  return {sizes, onednn_type(tensor.scalar_type()), strides};
}

// The bias as a matrix that is broadcast along all dimensions except the last.
Layout describe_bias(const Tensor& bias, int64_t dims) {
  dnnl::memory::dims sizes(dims, 1);
  sizes.back() = bias.numel();
  return {sizes, onednn_type(bias.scalar_type()),
          dnnl::memory::dims(dims, bias.numel())};
}

OnednnPlan plan_of(const dnnl::engine& engine, const MatrixProduct& product) {
  dnnl::primitive_attr attributes = onednn_attributes();
  dnnl::post_ops after;
  if (product.alpha != 1) {
    after.append_eltwise(dnnl::algorithm::eltwise_linear, product.alpha, 0);
  }
  if (product.beta != 0) after.append_sum(product.beta);
  if (product.gelu) after.append_eltwise(dnnl::algorithm::eltwise_gelu_erf, 0, 0);
  attributes.set_post_ops(after);
  const Layout a = describe(product.a), b = describe(product.b);
  const Layout out = describe(product.out);
  const Access written = product.beta == 0 ? Access::write : Access::read_write;
  std::vector<OnednnPlan::Argument> arguments{{DNNL_ARG_SRC, a, Access::read},
                                              {DNNL_ARG_WEIGHTS, b, Access::read},
                                              {DNNL_ARG_DST, out, written}};
  Layout bias;
  if (product.bias.defined()) {
    bias = describe_bias(product.bias, product.out.dim());
    arguments.push_back({DNNL_ARG_BIAS, bias, Access::read});
  }
  const dnnl::matmul::primitive_desc made =
      product.bias.defined()
          ? dnnl::matmul::primitive_desc(engine, a, b, bias, out, attributes)
          : dnnl::matmul::primitive_desc(engine, a, b, out, attributes);
  return make_plan(engine, "onednn_matmul", made, std::move(arguments));
}

std::string key_of(const MatrixProduct& product) {
  std::string key = "matmul";
  for (const Tensor* each : {&product.out, &product.a, &product.b}) {
    add_to_key(&key, each->sizes());
    add_to_key(&key, each->strides());
  }
  add_to_key(&key, product.a.scalar_type());
  add_to_key(&key, product.out.scalar_type());
  add_to_key(&key, product.alpha);
  add_to_key(&key, product.beta);
  add_to_key(&key, product.bias.defined());
  add_to_key(&key, product.gelu);
  return key;
}

}  // namespace

bool has_onednn_layout(const at::Tensor& tensor) {
  const int64_t rows = tensor.size(-2), columns = tensor.size(-1);
  const auto [row, column] = matrix_strides(tensor);
  const bool by_row = column == 1 && row >= std::max<int64_t>(columns, 1);
  const bool by_column = row == 1 && column >= std::max<int64_t>(rows, 1);
  return (by_row || by_column) && (tensor.dim() == 2 || tensor.stride(0) > 0);
}

bool onednn_multiplies(const PhysicalDevice& device, ScalarType type) {
  return OnednnDevice::of(device).multiplies(type);
}

void onednn_multiply(const MatrixProduct& product, size_t position, Stream& stream) {
  OnednnDevice& device = OnednnDevice::of(*stream.ordinal().devices[position]);
  onednn_checked(
      [&] {
        const auto plan = device.plan(
            key_of(product), [&] { return plan_of(device.engine(), product); });
        c10::SmallVector<Tensor, 4> tensors{product.a, product.b, product.out};
        if (product.bias.defined()) tensors.push_back(product.bias);
        run_plan(*plan, device, stream, position, tensors);
      },
      "multiply ", product.a.sizes(), " by ", product.b.sizes(), " (",
      product.a.scalar_type(), ")");
}

}  // namespace xpurt

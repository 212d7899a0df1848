// Matrix products of compiled graphs with what follows them: by one primitive of oneDNN
// if the device has it, else by PyTorch's ops on xpu.
#include "onednn/fused_product.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <torch/library.h>

#include "rows/fused_op.h"

namespace xpurt {
namespace {

using at::Tensor;

// The arguments of both ops of this file. See FusedProduct.
constexpr const char* kProductArguments =
    "(Tensor input, Tensor weight, Tensor? bias, Tensor? other, int[] weight_sizes, "
    "str activation, float alpha, float beta) -> Tensor";

template <Tensor (*function)(const FusedProduct&)>
Tensor with_arguments(const Tensor& input, const Tensor& weight,
                      const std::optional<Tensor>& bias,
                      const std::optional<Tensor>& other, at::IntArrayRef weight_sizes,
                      c10::string_view activation, double alpha, double beta) {
  FusedProduct of{{input,
                   weight,
                   bias.value_or(Tensor()),
                   other.value_or(Tensor()),
                   weight_sizes.vec(),
                   {std::string(activation), alpha, beta}}};
  of.check();
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  return function(of);
}

Tensor multiply_by_ops(const FusedProduct& of) {
  require_plain_weight(of, "product");
  if (of.is_batched()) return activate(at::bmm(of.input, of.weight), of.activation);
  Tensor result = of.bias.defined() ? at::addmm(of.bias, of.input, of.weight)
                                    : at::mm(of.input, of.weight);
  if (of.other.defined()) result.add_(of.other);
  return activate(result, of.activation);
}

Tensor fused_product(const FusedProduct& of) {
  static OpRecord& record = op_record(
      c10::Dispatcher::singleton().findSchemaOrThrow("xpurt::fused_product", ""));
  return run_fused(of, record, &multiply_by_ops);
}

// The packed weight; a copy of the weight if it needs no packing; a tensor without
// elements if the home device has no primitive.
Tensor pack_weight_of_product(const FusedProduct& of) {
  Stream& stream = current_stream(of.input.device().index());
  if (!onednn_fuses(stream.ordinal().home_device(), of)) {
    return at::empty({0}, of.weight.options());
  }
  const Tensor packed = pack_weight(of, stream.ordinal().home, stream);
  return packed.defined() ? packed : of.weight.clone();
}

TORCH_LIBRARY_FRAGMENT(xpurt, m) {
  const std::string arguments = kProductArguments;
  m.def(("fused_product" + arguments).c_str());
  m.def(("pack_product_weight" + arguments).c_str());
}

TORCH_LIBRARY_IMPL(xpurt, XPU, m) {
  m.impl("fused_product", &with_arguments<&fused_product>);
  m.impl("pack_product_weight", &with_arguments<&pack_weight_of_product>);
}

}  // namespace
}  // namespace xpurt

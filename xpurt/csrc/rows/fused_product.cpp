// Matrix products of compiled graphs with what follows them: by one primitive of oneDNN
// if the device has it, else by PyTorch's ops on xpu.
#include "onednn/fused_product.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <torch/library.h>

#include "memory/replica/device_override.h"
#include "op/op_report.h"
#include "rows/activation.h"
#include "schedule/policy.h"
#include "stream/capture.h"

namespace xpurt {
namespace {

using at::Tensor;

// The arguments of both ops of this file. See FusedProduct.
constexpr const char* kArguments =
    "(Tensor input, Tensor weight, Tensor? bias, Tensor? other, int[] weight_sizes, "
    "str activation, float alpha, float beta) -> Tensor";

template <Tensor (*function)(const FusedProduct&)>
Tensor with_arguments(const Tensor& input, const Tensor& weight,
                      const std::optional<Tensor>& bias,
                      const std::optional<Tensor>& other, at::IntArrayRef weight_sizes,
                      c10::string_view activation, double alpha, double beta) {
  FusedProduct of{input,
                  weight,
                  bias.value_or(Tensor()),
                  other.value_or(Tensor()),
                  weight_sizes.vec(),
                  {std::string(activation), alpha, beta}};
  of.check();
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  return function(of);
}

Tensor by_ops(const FusedProduct& of) {
  TORCH_CHECK(!of.is_packed(),
              "the weight of a compiled product is packed for a primitive of oneDNN, "
              "which does not run here (a capture, or another device). Compile the "
              "program without torch._inductor.config.freezing, or do not capture it.");
  Tensor result = of.bias.defined() ? at::addmm(of.bias, of.input, of.weight)
                                    : at::mm(of.input, of.weight);
  if (of.other.defined()) result.add_(of.other);
  return activate(result, of.activation);
}

Tensor fused_product(const FusedProduct& of) {
  static OpRecord& record = op_record(
      c10::Dispatcher::singleton().findSchemaOrThrow("xpurt::fused_product", ""));
  Stream& stream = current_stream(of.input.device().index());
  if (is_capturing(stream)) return by_ops(of);
  const uint64_t begin = ticks_now();
  const Ordinal& devices = stream.ordinal();
  size_t position = devices.home;
  if (devices.devices.size() > 1) {
    OpCost cost;
    cost.flops = 2;
    cost.elements = of.input.numel() * of.weight_sizes[1];
    cost.read(of.input);
    cost.read_whole(of.weight);
    RowRun run;
    position = choose_device(cost, stream, run);
  }
  const PhysicalDevice& device = *devices.devices[position];
  if (!onednn_fuses(device, of)) {
    const OnChosenDevice there(position, devices.home);
    return by_ops(of);
  }
  Tensor output = at::empty(of.output_sizes(), of.input.options());
  onednn_fused_product(of, output, position, stream);
  count_op(record, Tier::onednn, device.id, ticks_now() - begin, 0);
  return output;
}

// The packed weight; a copy of the weight if it needs no packing; a tensor without
// elements if the home device has no primitive.
Tensor pack_weight_of_product(const FusedProduct& of) {
  Stream& stream = current_stream(of.input.device().index());
  if (!onednn_fuses(stream.ordinal().home_device(), of)) {
    return at::empty({0}, of.weight.options());
  }
  const Tensor packed = pack_product_weight(of, stream.ordinal().home, stream);
  return packed.defined() ? packed : of.weight.clone();
}

TORCH_LIBRARY_FRAGMENT(xpurt, m) {
  const std::string arguments = kArguments;
  m.def(("fused_product" + arguments).c_str());
  m.def(("pack_product_weight" + arguments).c_str());
}

TORCH_LIBRARY_IMPL(xpurt, XPU, m) {
  m.impl("fused_product", &with_arguments<&fused_product>);
  m.impl("pack_product_weight", &with_arguments<&pack_weight_of_product>);
}

}  // namespace
}  // namespace xpurt

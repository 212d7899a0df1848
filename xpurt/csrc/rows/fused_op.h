// Ops of compiled graphs that run as one primitive of oneDNN, or else as PyTorch's ops
// on xpu.
#pragma once

#include <ATen/core/Tensor.h>

#include "memory/replica/device_override.h"
#include "onednn/fused_operands.h"
#include "op/op_report.h"
#include "stream/capture.h"
#include "stream/stream.h"

namespace xpurt {

// The position of the device that computes the op: at home, and under AUTO where it is
// predicted to finish first.
size_t device_for(const FusedOperands& of, int64_t multiply_adds, Stream& stream);

// Throws RuntimeError if the weight is packed, since PyTorch's ops can't read it.
void require_plain_weight(const FusedOperands& of, const char* what);

// By the primitive if the chosen device has it, else by_ops(of). `Op` is a
// FusedConvolution or a FusedProduct.
template <typename Op>
at::Tensor run_fused(const Op& of, OpRecord& record, at::Tensor (*by_ops)(const Op&)) {
  Stream& stream = current_stream(of.input.device().index());
  if (is_capturing(stream)) return by_ops(of);
  const uint64_t begin = ticks_now();
  const Ordinal& devices = stream.ordinal();
  const size_t position = device_for(of, of.multiply_adds(), stream);
  const PhysicalDevice& device = *devices.devices[position];
  if (!onednn_fuses(device, of)) {
    const OnChosenDevice there(position, devices.home);
    return by_ops(of);
  }
  at::Tensor output = of.empty_output();
  onednn_fused(of, output, position, stream);
  count_op(record, Tier::onednn, device.id, ticks_now() - begin, 0);
  return output;
}

}  // namespace xpurt

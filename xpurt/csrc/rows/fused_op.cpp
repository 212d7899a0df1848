#include "rows/fused_op.h"

#include <c10/util/Exception.h>

#include "schedule/policy.h"

namespace xpurt {

size_t device_for(const FusedOperands& of, int64_t multiply_adds, Stream& stream) {
  const Ordinal& devices = stream.ordinal();
  if (devices.devices.size() == 1) return devices.home;
  OpCost cost;
  cost.flops = 2;
  cost.elements = multiply_adds;
  cost.read(of.input);
  cost.read_whole(of.weight);
  RowRun run;
  return choose_device(cost, stream, run);
}

void require_plain_weight(const FusedOperands& of, const char* what) {
  TORCH_CHECK(!of.is_packed(), "the weight of a compiled ", what,
              " is packed for a primitive of oneDNN, which does not run here (a "
              "capture, or another device). Compile the program without "
              "torch._inductor.config.freezing, or do not capture it.");
}

}  // namespace xpurt

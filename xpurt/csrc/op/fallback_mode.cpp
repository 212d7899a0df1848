#include "op/fallback_mode.h"

#include <c10/util/Exception.h>

#include "device/device.h"
#include "host/errors.h"

namespace xpurt {
namespace {
std::atomic<FallbackMode> mode{FallbackMode::warn};
std::atomic<CopyListener> copy_listener{nullptr};

const char* shown(MissingFor reason) {
  return reason == MissingFor::operands
             ? ") for these operands"
             : ") that writes in a fixed order, which deterministic mode demands "
               "(torch.use_deterministic_algorithms(True), XPURT_DETERMINISTIC=1)";
}
}  // namespace

void set_fallback_mode(FallbackMode value) {
  mode = value;
}

void set_copy_listener(CopyListener listener) {
  copy_listener = listener;
}

FallbackMode fallback_mode() {
  return mode.load(std::memory_order_relaxed);
}

void about_to_copy(OpRecord& record, c10::DeviceIndex index, MissingFor reason) {
  const FallbackMode now = fallback_mode();
  const CopyListener listener = copy_listener.load(std::memory_order_relaxed);
  if (listener != nullptr && now != FallbackMode::error) listener(record.name);
  if (now == FallbackMode::silent) return;
  const std::string& device = ordinal(index).home_device().name;
  if (now == FallbackMode::error) {
    throw_fallback_error(
        c10::str(record.name, " has no kernel on xpu:", static_cast<int>(index), " (",
                 device, shown(reason),
                 ", and copying its operands to the host is forbidden by "
                 "XPURT_FALLBACK=error. Allow it with XPURT_FALLBACK=warn or silent."));
  }
  if (record.warned.exchange(true)) return;
  TORCH_WARN(
      record.name, " has no kernel on xpu:", static_cast<int>(index), " (", device,
      shown(reason),
      ": its operands are copied to the host, which computes it, and "
      "the results back. This is said once per op; XPURT_FALLBACK=silent silences "
      "it, XPURT_FALLBACK=error forbids it, and xpurt.op_report() counts it.");
}

}  // namespace xpurt

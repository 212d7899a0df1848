#include "device_failure.h"

#include "scheduler.h"

namespace xpurt {

DeviceFailure::DeviceFailure(const PhysicalDevice& failed, const std::string& what,
                             const char* why)
    : c10::Error({__func__, __FILE__, static_cast<uint32_t>(__LINE__)},
                 c10::str(what, " could not be submitted to ", failed.name, ": ", why,
                          is_excluded(failed.id)
                              ? ". That device failed before; what it alone held is "
                                "lost. Make the tensor anew."
                              : "")),
      device(failed) {}

void take_out(const PhysicalDevice& device, const std::string& why) {
  if (!exclude_device(device.id)) return;
  TORCH_WARN(device.name,
             " failed, and is not used for xpu any more in this process: its work is "
             "done by the other devices. ",
             why);
}

void take_out(const DeviceFailure& failure) {
  take_out(failure.device, failure.what_without_backtrace());
}

}  // namespace xpurt

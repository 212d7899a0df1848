#include "device/device_uuid.h"

namespace xpurt {

std::string device_uuid(DevicePointer pointer) {
  const auto& device = *reinterpret_cast<const sycl::device*>(pointer);
  if (!device.has(sycl::aspect::ext_intel_device_info_uuid)) return {};
  const auto bytes = device.get_info<sycl::ext::intel::info::device::uuid>();
  return {bytes.begin(), bytes.end()};
}

}  // namespace xpurt

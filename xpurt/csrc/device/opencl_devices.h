// The devices as OpenCL lists them, among them those that SYCL hides or cannot use.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "device/device.h"

namespace xpurt {

struct OpenCLDevice {
  uintptr_t handle = 0;  // the cl_device_id
  std::string platform;
  std::string name;
  std::string version;  // "OpenCL 3.0 ..."
  std::string driver_version;
  std::string extensions;  // separated by spaces
  uint64_t type = 0;       // bits of cl_device_type
  uint64_t svm = 0;        // bits of cl_device_svm_capabilities; 0: none
  uint32_t vendor_id = 0;
  uint32_t address_bits = 0;
  bool available = false;
  bool has_compiler = false;
};

// In the loader's order; empty without a driver. Loads the drivers. Throws nothing of
// OpenCL: a query that a driver does not answer leaves the field as it is.
std::vector<OpenCLDevice> opencl_devices();

// The cl_device_id of a SYCL device; 0 if its backend is not OpenCL.
uintptr_t opencl_handle(DevicePointer device);

// Whether it is an accelerator, also where SYCL takes it for a GPU.
bool is_accelerator(const sycl::device& device);

// The newest standard of OpenCL C that the device's compiler has: "CL3.0", "CL2.0" or
// "CL1.2", as the option -cl-std has it.
std::string opencl_c_standard(uintptr_t handle);

}  // namespace xpurt

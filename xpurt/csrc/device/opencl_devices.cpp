#include "device/opencl_devices.h"

#include <CL/cl.h>

#include <algorithm>
#include <sycl/backend/opencl.hpp>

namespace xpurt {
namespace {

// The answer to a query of OpenCL; empty if the driver does not answer. `query` is
// clGetDeviceInfo or clGetPlatformInfo.
template <auto& query, typename Of>
std::string answer_of(Of of, cl_uint what) {
  size_t bytes = 0;
  if (query(of, what, 0, nullptr, &bytes) != CL_SUCCESS) return {};
  std::string text(bytes, '\0');
  if (query(of, what, bytes, text.data(), nullptr) != CL_SUCCESS) return {};
  while (!text.empty() && text.back() == '\0') text.pop_back();
  return text;
}

std::string text_of(cl_device_id device, cl_device_info what) {
  return answer_of<clGetDeviceInfo>(device, what);
}

// 0 if the driver does not answer.
template <typename T>
T number_of(cl_device_id device, cl_device_info what) {
  T value{};
  if (clGetDeviceInfo(device, what, sizeof(value), &value, nullptr) != CL_SUCCESS) {
    return {};
  }
  return value;
}

// In the driver's order; empty if there are none, or the driver does not answer.
std::vector<cl_device_id> devices_of(cl_platform_id platform, cl_device_type type) {
  cl_uint count = 0;
  if (clGetDeviceIDs(platform, type, 0, nullptr, &count) != CL_SUCCESS) return {};
  std::vector<cl_device_id> devices(count);
  if (clGetDeviceIDs(platform, type, count, devices.data(), nullptr) != CL_SUCCESS) {
    return {};
  }
  return devices;
}

// Bits of cl_device_type. SYCL lists CPUs and GPUs only, so a layer reports GPU as the
// type of an accelerator. A query for accelerators still finds it. See Note [Type of an
// accelerator] in accelerator_layer/layer/layer.c.
cl_device_type type_of(cl_device_id device) {
  const auto type = number_of<cl_device_type>(device, CL_DEVICE_TYPE);
  if (type != CL_DEVICE_TYPE_GPU) return type;
  cl_device_id root = device;
  while (auto* const parent = number_of<cl_device_id>(root, CL_DEVICE_PARENT_DEVICE)) {
    root = parent;
  }
  const auto platform = number_of<cl_platform_id>(root, CL_DEVICE_PLATFORM);
  const auto accelerators = devices_of(platform, CL_DEVICE_TYPE_ACCELERATOR);
  return std::ranges::find(accelerators, root) != accelerators.end()
             ? CL_DEVICE_TYPE_ACCELERATOR
             : type;
}

OpenCLDevice describe(const std::string& platform, cl_device_id device) {
  OpenCLDevice found;
  found.handle = reinterpret_cast<uintptr_t>(device);
  found.platform = platform;
  found.name = text_of(device, CL_DEVICE_NAME);
  found.version = text_of(device, CL_DEVICE_VERSION);
  found.driver_version = text_of(device, CL_DRIVER_VERSION);
  found.extensions = text_of(device, CL_DEVICE_EXTENSIONS);
  found.type = type_of(device);
  found.svm = number_of<cl_device_svm_capabilities>(device, CL_DEVICE_SVM_CAPABILITIES);
  found.vendor_id = number_of<cl_uint>(device, CL_DEVICE_VENDOR_ID);
  found.address_bits = number_of<cl_uint>(device, CL_DEVICE_ADDRESS_BITS);
  found.available = number_of<cl_bool>(device, CL_DEVICE_AVAILABLE) != CL_FALSE;
  found.has_compiler =
      number_of<cl_bool>(device, CL_DEVICE_COMPILER_AVAILABLE) != CL_FALSE;
  return found;
}

// "OpenCL 3.0 ..." or "OpenCL C 2.0 ..." after the prefix, in tenths; 0 if unknown.
int version_after(const std::string& prefix, const std::string& text) {
  const size_t at = prefix.size();
  if (!text.starts_with(prefix) || text.size() < at + 3) return 0;
  return 10 * (text[at] - '0') + (text[at + 2] - '0');
}

}  // namespace

std::vector<OpenCLDevice> opencl_devices() {
  cl_uint count = 0;
  if (clGetPlatformIDs(0, nullptr, &count) != CL_SUCCESS) return {};
  std::vector<cl_platform_id> platforms(count);
  if (clGetPlatformIDs(count, platforms.data(), nullptr) != CL_SUCCESS) return {};
  std::vector<OpenCLDevice> found;
  for (cl_platform_id platform : platforms) {
    const std::string name = answer_of<clGetPlatformInfo>(platform, CL_PLATFORM_NAME);
    for (cl_device_id device : devices_of(platform, CL_DEVICE_TYPE_ALL)) {
      found.push_back(describe(name, device));
    }
  }
  return found;
}

uintptr_t opencl_handle(DevicePointer pointer) {
  const auto& device = *reinterpret_cast<const sycl::device*>(pointer);
  if (device.get_backend() != kOpenCL) return 0;
  return reinterpret_cast<uintptr_t>(sycl::get_native<kOpenCL>(device));
}

bool is_accelerator(const sycl::device& device) {
  if (device.get_backend() != kOpenCL) return device.is_accelerator();
  return (type_of(sycl::get_native<kOpenCL>(device)) & CL_DEVICE_TYPE_ACCELERATOR) != 0;
}

std::string opencl_c_standard(uintptr_t handle) {
  auto* const device = reinterpret_cast<cl_device_id>(handle);
  // A device of OpenCL 3.0 has OpenCL C 3.0, and reports 1.2 here if it lacks a feature
  // of 2.0.
  if (version_after("OpenCL ", text_of(device, CL_DEVICE_VERSION)) >= 30) {
    return "CL3.0";
  }
  const int version =
      version_after("OpenCL C ", text_of(device, CL_DEVICE_OPENCL_C_VERSION));
  return version >= 20 ? "CL2.0" : "CL1.2";
}

}  // namespace xpurt

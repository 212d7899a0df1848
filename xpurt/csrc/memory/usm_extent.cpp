#include "memory/usm_extent.h"

#include <CL/cl.h>
#include <CL/cl_ext.h>

#include <sycl/backend/opencl.hpp>

namespace xpurt {
namespace {

clGetMemAllocInfoINTEL_fn find_query(cl_device_id device) {
  cl_platform_id platform = nullptr;
  if (clGetDeviceInfo(device, CL_DEVICE_PLATFORM, sizeof(platform), &platform,
                      nullptr) != CL_SUCCESS) {
    return nullptr;
  }
  return reinterpret_cast<clGetMemAllocInfoINTEL_fn>(
      clGetExtensionFunctionAddressForPlatform(platform, "clGetMemAllocInfoINTEL"));
}

}  // namespace

// By OpenCL: SYCL has no such query.
Extent usm_extent(const void* pointer, const PhysicalDevice& home) {
  if (const Extent ours = block_of_pointer(pointer); ours.start != nullptr) return ours;
  // Memory of xpurt's allocator, but in no block in use.
  if (device_of_pointer(pointer) >= 0) return {const_cast<void*>(pointer), 0};
  if (!home.is_opencl) return {};
  const auto query = find_query(sycl::get_native<kOpenCL>(home.device));
  if (query == nullptr) return {};
  // Not released: SYCL does not document who owns this reference, and contexts live to
  // the end of the process.
  const cl_context context = sycl::get_native<kOpenCL>(home.context);
  Extent found;
  const bool found_one =
      query(context, pointer, CL_MEM_ALLOC_BASE_PTR_INTEL, sizeof(found.start),
            &found.start, nullptr) == CL_SUCCESS &&
      query(context, pointer, CL_MEM_ALLOC_SIZE_INTEL, sizeof(found.bytes),
            &found.bytes, nullptr) == CL_SUCCESS;
  return found_one && found.start != nullptr ? found : Extent{};
}

}  // namespace xpurt

// XPURT_VIRTUAL_GPU_LIMITS: a device that has less than the CPU that it is made of.
//
// What is missing is hidden from queries and refused in use, as a driver would: a
// kernel with a work-group, local memory or a size of sub-groups that the device does
// not have is not started. Of local memory, what a kernel declares is counted.

#include <stdio.h>
#include <string.h>

#include "layer.h"

enum { MAX_SIZES = 8 };

static clEnqueueNDRangeKernel_t* run_kernel;  // those of the layer so far
static clBuildProgram_t* build;

static bool begins(const char* word, size_t length, const char* with) {
  const size_t prefix = strlen(with);
  return length >= prefix && memcmp(word, with, prefix) == 0;
}

bool limits_hide(const char* word, size_t length) {
  const Limits* const limits = &settings.limits;
  if (limits->no_usm && begins(word, length, "cl_intel_unified_shared_memory"))
    return true;
  return limits->sub_groups == NO_SUB_GROUPS &&
         (begins(word, length, "cl_khr_subgroup") ||
          begins(word, length, "cl_intel_subgroup") ||
          begins(word, length, "cl_intel_required_subgroup_size") ||
          begins(word, length, "__opencl_c_subgroups"));
}

static bool has_size(size_t lanes) {
  return lanes < 64 && (settings.limits.sub_groups >> lanes & 1) != 0;
}

static cl_int sub_group_sizes(size_t room, void* out, size_t* size_ret) {
  size_t sizes[MAX_SIZES];
  size_t count = 0;
  for (size_t lanes = 1; lanes < 64 && count < MAX_SIZES; lanes++)
    if (has_size(lanes)) sizes[count++] = lanes;
  return answer(sizes, count * sizeof *sizes, room, out, size_ret);
}

// The lesser of the limit and of what the CPU has; the CPU's if the limit is 0.
static cl_int lesser(cl_device_info param, uint64_t limit, size_t size, size_t room,
                     void* out, size_t* size_ret) {
  uint64_t value = 0;
  const cl_int error =
      next.clGetDeviceInfo(virtual_gpu()->device, param, size, &value, NULL);
  if (error != CL_SUCCESS) return error;
  if (limit != 0 && limit < value) value = limit;
  return answer(&value, size, room, out, size_ret);
}

static cl_int item_sizes(size_t room, void* out, size_t* size_ret) {
  size_t sizes[3] = {0};
  const cl_int error = next.clGetDeviceInfo(
      virtual_gpu()->device, CL_DEVICE_MAX_WORK_ITEM_SIZES, sizeof sizes, sizes, NULL);
  if (error != CL_SUCCESS) return error;
  for (int i = 0; i < 3; i++)
    if (sizes[i] > settings.limits.work_group) sizes[i] = settings.limits.work_group;
  return answer(sizes, sizeof sizes, room, out, size_ret);
}

// "OpenCL 1.2 xpurt", for the queries of versions as text.
static cl_int version_text(const char* prefix, size_t room, void* out,
                           size_t* size_ret) {
  char text[64];
  const int length = snprintf(text, sizeof text, "%s%d.%d xpurt", prefix,
                              settings.limits.opencl / 10, settings.limits.opencl % 10);
  return answer(text, (size_t)length + 1, room, out, size_ret);
}

bool limits_answer(cl_device_info param, size_t room, void* out, size_t* size_ret,
                   cl_int* error) {
  static const uint64_t zeros[4] = {0};
  const Limits* const limits = &settings.limits;
  const cl_version version =
      CL_MAKE_VERSION(limits->opencl / 10u, limits->opencl % 10u, 0u);
  const cl_uint bits = 32;
  bool limited = true;
  switch (param) {
    case CL_DEVICE_HOST_MEM_CAPABILITIES_INTEL:
    case CL_DEVICE_DEVICE_MEM_CAPABILITIES_INTEL:
    case CL_DEVICE_SINGLE_DEVICE_SHARED_MEM_CAPABILITIES_INTEL:
    case CL_DEVICE_CROSS_DEVICE_SHARED_MEM_CAPABILITIES_INTEL:
    case CL_DEVICE_SHARED_SYSTEM_MEM_CAPABILITIES_INTEL:
      limited = limits->no_usm;
      if (limited) *error = CL_INVALID_VALUE;
      break;
    case CL_DEVICE_COMPILER_AVAILABLE:
    case CL_DEVICE_LINKER_AVAILABLE:
      limited = limits->no_compiler;
      if (limited) *error = answer(zeros, sizeof(cl_bool), room, out, size_ret);
      break;
    case CL_DEVICE_ADDRESS_BITS:
      limited = limits->narrow;
      if (limited) *error = answer(&bits, sizeof bits, room, out, size_ret);
      break;
    case CL_DEVICE_VENDOR_ID:
      limited = limits->vendor_id != 0;
      if (limited)
        *error = answer(&limits->vendor_id, sizeof(cl_uint), room, out, size_ret);
      break;
    case CL_DEVICE_VERSION:
      limited = limits->opencl != 0;
      if (limited) *error = version_text("OpenCL ", room, out, size_ret);
      break;
    case CL_DEVICE_OPENCL_C_VERSION:
      limited = limits->opencl != 0;
      if (limited) *error = version_text("OpenCL C ", room, out, size_ret);
      break;
    case CL_DEVICE_NUMERIC_VERSION:
      limited = limits->opencl != 0;
      if (limited) *error = answer(&version, sizeof version, room, out, size_ret);
      break;
    case CL_DEVICE_OPENCL_C_ALL_VERSIONS:
      limited = limits->opencl != 0;
      if (limited) *error = CL_INVALID_VALUE;  // a query of OpenCL 3.0
      break;
    case CL_DEVICE_SUB_GROUP_SIZES_INTEL:
      limited = limits->sub_groups != 0;
      if (limited) *error = sub_group_sizes(room, out, size_ret);
      break;
    case CL_DEVICE_MAX_NUM_SUB_GROUPS:
      limited = limits->sub_groups == NO_SUB_GROUPS;
      if (limited) *error = answer(zeros, sizeof(cl_uint), room, out, size_ret);
      break;
    case CL_DEVICE_MAX_WORK_GROUP_SIZE:
      limited = limits->work_group != 0;
      if (limited)
        *error = lesser(param, limits->work_group, sizeof(size_t), room, out, size_ret);
      break;
    case CL_DEVICE_MAX_WORK_ITEM_SIZES:
      limited = limits->work_group != 0;
      if (limited) *error = item_sizes(room, out, size_ret);
      break;
    case CL_DEVICE_LOCAL_MEM_SIZE:
      limited = limits->local_memory != 0;
      if (limited)
        *error =
            lesser(param, limits->local_memory, sizeof(cl_ulong), room, out, size_ret);
      break;
    case CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT:
      limited = limits->vector_width != 0;
      if (limited)
        *error =
            lesser(param, limits->vector_width, sizeof(cl_uint), room, out, size_ret);
      break;
    default:
      limited = false;
  }
  return limited;
}

cl_int limits_platform_version(size_t room, void* out, size_t* size_ret) {
  return version_text("OpenCL ", room, out, size_ret);
}

const char* limits_preamble(void) {
  if (settings.limits.sub_groups != NO_SUB_GROUPS) return "";
  return "#undef cl_khr_subgroups\n"
         "#undef cl_khr_subgroup_shuffle\n"
         "#undef cl_intel_subgroups\n"
         "#undef cl_intel_required_subgroup_size\n"
         "#define intel_reqd_sub_group_size(lanes) this device has no sub_groups\n"
         "#define get_sub_group_local_id this_device_has_no_sub_groups\n"
         "#define sub_group_barrier this_device_has_no_sub_groups\n"
         "#define sub_group_broadcast this_device_has_no_sub_groups\n"
         "#define sub_group_shuffle_xor this_device_has_no_sub_groups\n";
}

static cl_int build_program(cl_program program, cl_uint count,
                            const cl_device_id* devices, const char* options,
                            void (*notify)(cl_program, void*), void* user_data) {
  const Limits* const limits = &settings.limits;
  cl_context context = NULL;
  next.clGetProgramInfo(program, CL_PROGRAM_CONTEXT, sizeof context, &context, NULL);
  if (is_gpu_context(context)) {
    if (limits->no_compiler)
      return refuse(CL_COMPILER_NOT_AVAILABLE, "clBuildProgram",
                    "there is no compiler");
    const char* const std = options == NULL ? NULL : strstr(options, "-cl-std=CL");
    if (limits->opencl != 0 && std != NULL && strlen(std) >= 13 &&
        10 * (std[10] - '0') + (std[12] - '0') > limits->opencl)
      return refuse(CL_INVALID_BUILD_OPTIONS, "clBuildProgram",
                    "the device has an older OpenCL C than -cl-std wants");
  }
  return build(program, count, devices, options, notify, user_data);
}

// Whether the kernel and its work-group fit the limits.
static cl_int check(cl_kernel kernel, cl_uint dims, const size_t* local) {
  const Limits* const limits = &settings.limits;
  const cl_device_id device = virtual_gpu()->device;
  size_t items = 1, lanes = 0;
  for (cl_uint i = 0; local != NULL && i < dims; i++) items *= local[i];
  if (limits->work_group != 0 && items > limits->work_group)
    return refuse(CL_INVALID_WORK_GROUP_SIZE, "clEnqueueNDRangeKernel",
                  "the work-group is larger than the device's largest");
  cl_ulong bytes = 0;
  next.clGetKernelWorkGroupInfo(kernel, device, CL_KERNEL_LOCAL_MEM_SIZE, sizeof bytes,
                                &bytes, NULL);
  if (limits->local_memory != 0 && bytes > limits->local_memory)
    return refuse(CL_OUT_OF_RESOURCES, "clEnqueueNDRangeKernel",
                  "the kernel has more local memory than the device");
  // 0 for a kernel that requires no size.
  if (limits->sub_groups != 0 &&
      next.clGetKernelSubGroupInfo(kernel, device,
                                   CL_KERNEL_COMPILE_SUB_GROUP_SIZE_INTEL, 0, NULL,
                                   sizeof lanes, &lanes, NULL) == CL_SUCCESS &&
      lanes != 0 && !has_size(lanes))
    return refuse(CL_INVALID_KERNEL, "clEnqueueNDRangeKernel",
                  "the kernel requires a size of sub-groups that the device lacks");
  return CL_SUCCESS;
}

static cl_int enqueue_kernel(cl_command_queue queue, cl_kernel kernel, cl_uint dims,
                             const size_t* offset, const size_t* global,
                             const size_t* local, cl_uint wait_count,
                             const cl_event* waits, cl_event* event) {
  if (is_gpu_context(context_of_queue(queue))) {
    const cl_int error = check(kernel, dims, local);
    if (error != CL_SUCCESS) return error;
  }
  return run_kernel(queue, kernel, dims, offset, global, local, wait_count, waits,
                    event);
}

void hook_limits(cl_icd_dispatch* table) {
  if (!settings.limits.any) return;
  run_kernel = table->clEnqueueNDRangeKernel;
  build = table->clBuildProgram;
  table->clEnqueueNDRangeKernel = enqueue_kernel;
  table->clBuildProgram = build_program;
}

// The virtual GPU as a device: the information that it reports; it cannot be split.

#include "layer.h"

#include <stdlib.h>
#include <string.h>

static bool is_word(const char* word, size_t length, const char* of) {
  return strlen(of) == length && memcmp(word, of, length) == 0;
}

// True for an extension or OpenCL C feature that the CPU has and the virtual GPU lacks.
static bool is_hidden(const char* name, size_t length) {
  if (!settings.fp64 && (is_word(name, length, "cl_khr_fp64") ||
                         is_word(name, length, "__opencl_c_fp64")))
    return true;
  if (!settings.fp16 && (is_word(name, length, "cl_khr_fp16") ||
                         is_word(name, length, "__opencl_c_fp16")))
    return true;
  if (limits_hide(name, length)) return true;
  // Kernels and copies recorded into a command buffer would bypass the checks of
  // memory.h.
  if (settings.strict &&
      (is_word(name, length, "cl_khr_command_buffer") ||
       is_word(name, length, "cl_khr_command_buffer_mutable_dispatch")))
    return true;
  if (settings.svm && (is_word(name, length, "cl_intel_unified_shared_memory") ||
                       is_word(name, length, "cl_khr_unified_svm")))
    return true;
  // Partitioning by names, and attributes of Intel's hardware.
  return is_word(name, length, "cl_intel_device_partition_by_names") ||
         is_word(name, length, "cl_intel_device_attribute_query");
}

static cl_int filtered_words(cl_device_info param, size_t room, void* out,
                             size_t* size_ret) {
  size_t size = 0;
  char* const words = device_answer(virtual_gpu()->device, param, &size);
  if (words == NULL) return CL_OUT_OF_HOST_MEMORY;
  size_t kept = 0;
  for (const char* word = words; *word != '\0';) {
    const size_t length = strcspn(word, " ");
    if (length > 0 && !is_hidden(word, length)) {
      if (kept > 0) words[kept++] = ' ';
      memmove(words + kept, word, length);
      kept += length;
    }
    word += length;
    word += strspn(word, " ");
  }
  words[kept] = '\0';
  const cl_int error = answer(words, kept + 1, room, out, size_ret);
  free(words);
  return error;
}

static cl_int filtered_versions(cl_device_info param, size_t room, void* out,
                                size_t* size_ret) {
  size_t size = 0;
  cl_name_version* const names = device_answer(virtual_gpu()->device, param, &size);
  if (names == NULL) return CL_OUT_OF_HOST_MEMORY;
  size_t kept = 0;
  for (size_t i = 0; i < size / sizeof *names; i++)
    if (!is_hidden(names[i].name, strlen(names[i].name))) names[kept++] = names[i];
  const cl_int error = answer(names, kept * sizeof *names, room, out, size_ret);
  free(names);
  return error;
}

static cl_int limited(cl_device_info param, size_t room, void* out, size_t* size_ret) {
  cl_ulong bytes = 0;
  const cl_int error =
      next.clGetDeviceInfo(virtual_gpu()->device, param, sizeof bytes, &bytes, NULL);
  if (error != CL_SUCCESS) return error;
  if (settings.memory_bytes != 0 &&
      (param == CL_DEVICE_GLOBAL_MEM_SIZE || settings.memory_bytes < bytes))
    bytes = settings.memory_bytes;
  return answer(&bytes, sizeof bytes, room, out, size_ret);
}

cl_int virtual_gpu_device_info(cl_device_info param, size_t room, void* out,
                               size_t* size_ret) {
  static const char strict_name[] = "xpurt virtual GPU (strict)";
  static const char lenient_name[] = "xpurt virtual GPU (lenient)";
  static const char coherent_name[] = "xpurt virtual GPU (coherent)";
  static const char svm_name[] = "xpurt virtual GPU (svm)";
  static const char vendor[] = "xpurt";
  static const char driver_version[] = "1.0";
  // No PCI vendor's number: with Intel's, libraries would search for Intel's hardware.
  static const cl_uint vendor_id = 0x20001;
  static const unsigned char uuid[CL_UUID_SIZE_KHR + 1] = "xpurtvirtualgpu0";
  static const cl_device_type type = CL_DEVICE_TYPE_GPU;
  static const cl_device_exec_capabilities executes = CL_EXEC_KERNEL;
  static const cl_uint one = 1;
  static const cl_device_svm_capabilities coarse = CL_DEVICE_SVM_COARSE_GRAIN_BUFFER;
  static const uint64_t zeros[4] = {0};
  const VirtualGpu* const ours = virtual_gpu();
  cl_int error = CL_SUCCESS;
  if (limits_answer(param, room, out, size_ret, &error)) return error;
  switch (param) {
    case CL_DEVICE_TYPE:
      return answer(&type, sizeof type, room, out, size_ret);
    case CL_DEVICE_PLATFORM:
      return answer(&ours->platform, sizeof ours->platform, room, out, size_ret);
    case CL_DEVICE_NAME:
      if (settings.svm) return answer(svm_name, sizeof svm_name, room, out, size_ret);
      if (settings.strict)
        return answer(strict_name, sizeof strict_name, room, out, size_ret);
      if (settings.coherent)
        return answer(coherent_name, sizeof coherent_name, room, out, size_ret);
      return answer(lenient_name, sizeof lenient_name, room, out, size_ret);
    case CL_DEVICE_VENDOR:
      return answer(vendor, sizeof vendor, room, out, size_ret);
    case CL_DEVICE_VENDOR_ID:
      return answer(&vendor_id, sizeof vendor_id, room, out, size_ret);
    case CL_DRIVER_VERSION:
      return answer(driver_version, sizeof driver_version, room, out, size_ret);
    case CL_DEVICE_UUID_KHR:
      return answer(uuid, CL_UUID_SIZE_KHR, room, out, size_ret);
    case CL_DEVICE_EXECUTION_CAPABILITIES:
      return answer(&executes, sizeof executes, room, out, size_ret);
    case CL_DEVICE_REFERENCE_COUNT:
      return answer(&one, sizeof one, room, out, size_ret);
    case CL_DEVICE_PARENT_DEVICE:
      return answer(zeros, sizeof(cl_device_id), room, out, size_ret);
    case CL_DEVICE_PARTITION_MAX_SUB_DEVICES:
    case CL_DEVICE_HOST_UNIFIED_MEMORY:
      return answer(zeros, sizeof(cl_uint), room, out, size_ret);
    case CL_DEVICE_PARTITION_PROPERTIES:
    case CL_DEVICE_PARTITION_TYPE:
    case CL_DEVICE_PARTITION_AFFINITY_DOMAIN:
      return answer(zeros, sizeof(cl_bitfield), room, out, size_ret);
    case CL_DEVICE_SVM_CAPABILITIES:
      if (settings.svm) return answer(&coarse, sizeof coarse, room, out, size_ret);
      return answer(zeros, sizeof coarse, room, out, size_ret);
    case CL_DEVICE_HOST_MEM_CAPABILITIES_INTEL:
    case CL_DEVICE_DEVICE_MEM_CAPABILITIES_INTEL:
    case CL_DEVICE_SINGLE_DEVICE_SHARED_MEM_CAPABILITIES_INTEL:
      if (settings.svm) return CL_INVALID_VALUE;
      break;
    case CL_DEVICE_CROSS_DEVICE_SHARED_MEM_CAPABILITIES_INTEL:
      if (settings.svm) return CL_INVALID_VALUE;
      return answer(zeros, sizeof(cl_bitfield), room, out, size_ret);
    case CL_DEVICE_SHARED_SYSTEM_MEM_CAPABILITIES_INTEL:
      if (settings.svm) return CL_INVALID_VALUE;
      if (settings.coherent) break;  // the CPU's
      return answer(zeros, sizeof(cl_bitfield), room, out, size_ret);
    case CL_DEVICE_GLOBAL_MEM_SIZE:
    case CL_DEVICE_MAX_MEM_ALLOC_SIZE:
      return limited(param, room, out, size_ret);
    case CL_DEVICE_EXTENSIONS:
      return filtered_words(param, room, out, size_ret);
    case CL_DEVICE_EXTENSIONS_WITH_VERSION:
    case CL_DEVICE_OPENCL_C_FEATURES:
      return filtered_versions(param, room, out, size_ret);
    case CL_DEVICE_DOUBLE_FP_CONFIG:
      if (!settings.fp64)
        return answer(zeros, sizeof(cl_device_fp_config), room, out, size_ret);
      break;
    case CL_DEVICE_PREFERRED_VECTOR_WIDTH_DOUBLE:
    case CL_DEVICE_NATIVE_VECTOR_WIDTH_DOUBLE:
      if (!settings.fp64) return answer(zeros, sizeof(cl_uint), room, out, size_ret);
      break;
    case CL_DEVICE_HALF_FP_CONFIG:
      if (!settings.fp16)
        return answer(zeros, sizeof(cl_device_fp_config), room, out, size_ret);
      break;
    case CL_DEVICE_PREFERRED_VECTOR_WIDTH_HALF:
    case CL_DEVICE_NATIVE_VECTOR_WIDTH_HALF:
      if (!settings.fp16) return answer(zeros, sizeof(cl_uint), room, out, size_ret);
      break;
    default:
      break;
  }
  return next.clGetDeviceInfo(ours->device, param, room, out, size_ret);
}

bool is_gpu_device(cl_device_id device) {
  return device != NULL && device == virtual_gpu()->device;
}

static cl_int get_device_ids(cl_platform_id platform, cl_device_type type, cl_uint room,
                             cl_device_id* devices, cl_uint* count) {
  const VirtualGpu* const ours = virtual_gpu();
  if (platform == NULL || platform != ours->platform)
    return next.clGetDeviceIDs(platform, type, room, devices, count);
  if (devices != NULL && room == 0) return CL_INVALID_VALUE;
  const bool wanted = type == CL_DEVICE_TYPE_ALL ||
                      (type & (CL_DEVICE_TYPE_GPU | CL_DEVICE_TYPE_DEFAULT)) != 0;
  if (count != NULL) *count = wanted ? 1 : 0;
  if (!wanted) return CL_DEVICE_NOT_FOUND;
  if (devices != NULL) devices[0] = ours->device;
  return CL_SUCCESS;
}

static cl_int get_device_info(cl_device_id device, cl_device_info param, size_t room,
                              void* out, size_t* size_ret) {
  if (is_gpu_device(device)) return virtual_gpu_device_info(param, room, out, size_ret);
  return next.clGetDeviceInfo(device, param, room, out, size_ret);
}

// A root device has no reference count; the sub-device below would have one.
static cl_int retain_device(cl_device_id device) {
  return is_gpu_device(device) ? CL_SUCCESS : next.clRetainDevice(device);
}

static cl_int release_device(cl_device_id device) {
  return is_gpu_device(device) ? CL_SUCCESS : next.clReleaseDevice(device);
}

static cl_int create_sub_devices(cl_device_id device,
                                 const cl_device_partition_property* properties,
                                 cl_uint room, cl_device_id* devices, cl_uint* count) {
  if (is_gpu_device(device)) return CL_DEVICE_PARTITION_FAILED;
  return next.clCreateSubDevices(device, properties, room, devices, count);
}

void hook_devices(cl_icd_dispatch* table) {
  table->clGetDeviceIDs = get_device_ids;
  table->clGetDeviceInfo = get_device_info;
  table->clRetainDevice = retain_device;
  table->clReleaseDevice = release_device;
  table->clCreateSubDevices = create_sub_devices;
}

// The platform of the virtual GPU, and the creation of its one device.

#include "layer.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

// For the loader an object is a pointer to its dispatch table. This one is never passed
// down: every call that takes a platform is hooked.
static struct {
  const cl_icd_dispatch* dispatch;
} platform_object;

static VirtualGpu gpu;
static pthread_once_t made = PTHREAD_ONCE_INIT;

static bool has_usm(cl_device_id device) {
  size_t size = 0;
  char* const extensions = device_answer(device, CL_DEVICE_EXTENSIONS, &size);
  const bool found =
      extensions != NULL && has_word(extensions, "cl_intel_unified_shared_memory");
  free(extensions);
  return found;
}

// A sub-device with all compute units, which exists even on a machine with one core.
static cl_device_id whole_sub_device(cl_device_id cpu) {
  cl_uint units = 0;
  if (next.clGetDeviceInfo(cpu, CL_DEVICE_MAX_COMPUTE_UNITS, sizeof units, &units,
                           NULL))
    return NULL;
  const cl_device_partition_property parts[] = {
      CL_DEVICE_PARTITION_BY_COUNTS, units, CL_DEVICE_PARTITION_BY_COUNTS_LIST_END, 0};
  cl_device_id part = NULL;
  if (next.clCreateSubDevices(cpu, parts, 1, &part, NULL)) return NULL;
  return part;
}

static void make(void) {
  cl_platform_id platforms[64];
  cl_uint count = 0;
  if (next.clGetPlatformIDs(64, platforms, &count)) count = 0;
  if (count > 64) count = 64;
  for (cl_uint i = 0; i < count && gpu.device == NULL; i++) {
    cl_device_id cpu = NULL;
    if (next.clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_CPU, 1, &cpu, NULL) ||
        !has_usm(cpu))
      continue;
    gpu.device = whole_sub_device(cpu);
    gpu.cpu = cpu;
    gpu.cpu_platform = platforms[i];
  }
  if (gpu.device == NULL) {
    refuse(0, "making the device",
           "no OpenCL CPU device with unified shared memory was found to make it "
           "from; install intel-opencl-rt, or point OCL_ICD_FILENAMES at its "
           "libintelocl.so");
    return;
  }
  platform_object.dispatch = &next;
  gpu.platform = (cl_platform_id)&platform_object;
}

const VirtualGpu* virtual_gpu(void) {
  pthread_once(&made, make);
  return &gpu;
}

static bool is_ours(cl_platform_id platform) {
  return platform != NULL && platform == virtual_gpu()->platform;
}

static cl_int get_platform_ids(cl_uint room, cl_platform_id* platforms,
                               cl_uint* count) {
  const VirtualGpu* const ours = virtual_gpu();
  cl_uint below = 0;
  const cl_int error = next.clGetPlatformIDs(room, platforms, &below);
  if (error != CL_SUCCESS || ours->device == NULL) {
    if (count != NULL) *count = below;
    return error;
  }
  if (platforms != NULL && below < room) platforms[below] = ours->platform;
  if (count != NULL) *count = below + 1;
  return CL_SUCCESS;
}

static cl_int get_platform_info(cl_platform_id platform, cl_platform_info param,
                                size_t room, void* out, size_t* size_ret) {
  static const char name[] = "xpurt virtual GPU";
  static const char vendor[] = "xpurt";
  if (!is_ours(platform))
    return next.clGetPlatformInfo(platform, param, room, out, size_ret);
  switch (param) {
    case CL_PLATFORM_NAME:
      return answer(name, sizeof name, room, out, size_ret);
    case CL_PLATFORM_VENDOR:
      return answer(vendor, sizeof vendor, room, out, size_ret);
    // A platform's extensions are those that all of its devices have.
    case CL_PLATFORM_EXTENSIONS:
      return virtual_gpu_device_info(CL_DEVICE_EXTENSIONS, room, out, size_ret);
    case CL_PLATFORM_EXTENSIONS_WITH_VERSION:
      return virtual_gpu_device_info(CL_DEVICE_EXTENSIONS_WITH_VERSION, room, out,
                                     size_ret);
    case CL_PLATFORM_VERSION:
      if (settings.limits.opencl != 0)
        return limits_platform_version(room, out, size_ret);
      // fall through
    default:
      return next.clGetPlatformInfo(virtual_gpu()->cpu_platform, param, room, out,
                                    size_ret);
  }
}

static cl_int unload_platform_compiler(cl_platform_id platform) {
  return is_ours(platform) ? CL_SUCCESS : next.clUnloadPlatformCompiler(platform);
}

static void* get_extension_function(cl_platform_id platform, const char* name) {
  const VirtualGpu* const ours = virtual_gpu();
  if (name == NULL || (!is_ours(platform) && platform != ours->cpu_platform))
    return next.clGetExtensionFunctionAddressForPlatform(platform, name);
  // The CPU's platform gets the same entry points. On the CPU's queues they call the
  // driver's functions, and refuse the virtual GPU's memory.
  void* const entry_point = usm_entry_point(name);
  const bool hides_usm = settings.svm || settings.limits.no_usm;
  if (entry_point != NULL) return hides_usm && is_ours(platform) ? NULL : entry_point;
  return next.clGetExtensionFunctionAddressForPlatform(ours->cpu_platform, name);
}

static void* get_extension_function_anywhere(const char* name) {
  void* const entry_point =
      name == NULL || virtual_gpu()->device == NULL ? NULL : usm_entry_point(name);
  return entry_point != NULL ? entry_point : next.clGetExtensionFunctionAddress(name);
}

void hook_platforms(cl_icd_dispatch* table) {
  table->clGetPlatformIDs = get_platform_ids;
  table->clGetPlatformInfo = get_platform_info;
  table->clUnloadPlatformCompiler = unload_platform_compiler;
  table->clGetExtensionFunctionAddressForPlatform = get_extension_function;
  table->clGetExtensionFunctionAddress = get_extension_function_anywhere;
}

// An OpenCL layer for tests: the drivers below appear to have no unified shared memory,
// and their platforms have the name that TEST_PLATFORM_NAME holds, if it is set.

#include <stdlib.h>
#include <string.h>

#include "opencl_layer.h"

const char layer_name[] = "a driver without USM";

static const char USM[] = "cl_intel_unified_shared_memory";

// Makes other words of those that begin with the extension's name; frees `words`.
static cl_int answer_hidden(char* words, size_t room, void* out, size_t* size_ret) {
  if (words == NULL) return CL_OUT_OF_HOST_MEMORY;
  for (char* at = words; (at = strstr(at, USM)) != NULL;) memcpy(at, "xx", 2);
  const cl_int error = answer(words, strlen(words) + 1, room, out, size_ret);
  free(words);
  return error;
}

static cl_int device_info(cl_device_id device, cl_device_info param, size_t room,
                          void* out, size_t* size_ret) {
  size_t size = 0;
  if (param == CL_DEVICE_EXTENSIONS)
    return answer_hidden(device_answer(device, param, &size), room, out, size_ret);
  if (param >= CL_DEVICE_HOST_MEM_CAPABILITIES_INTEL &&
      param <= CL_DEVICE_SHARED_SYSTEM_MEM_CAPABILITIES_INTEL)
    return CL_INVALID_VALUE;
  return next.clGetDeviceInfo(device, param, room, out, size_ret);
}

static cl_int platform_info(cl_platform_id platform, cl_platform_info param,
                            size_t room, void* out, size_t* size_ret) {
  const char* const name = getenv("TEST_PLATFORM_NAME");
  size_t size = 0;
  if (param == CL_PLATFORM_EXTENSIONS)
    return answer_hidden(platform_answer(platform, param, &size), room, out, size_ret);
  if (param == CL_PLATFORM_NAME && name != NULL)
    return answer(name, strlen(name) + 1, room, out, size_ret);
  return next.clGetPlatformInfo(platform, param, room, out, size_ret);
}

static void* extension_function(cl_platform_id platform, const char* name) {
  if (strstr(name, "Mem") != NULL && strstr(name, "INTEL") != NULL) return NULL;
  return next.clGetExtensionFunctionAddressForPlatform(platform, name);
}

void hook_all(cl_icd_dispatch* table) {
  table->clGetDeviceInfo = device_info;
  table->clGetPlatformInfo = platform_info;
  table->clGetExtensionFunctionAddressForPlatform = extension_function;
}

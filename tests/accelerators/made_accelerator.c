// An OpenCL layer for tests: devices below of the type that TEST_ACCELERATOR names, cpu
// or gpu, report the type accelerator.

#include <stdlib.h>
#include <string.h>

#include "opencl_layer.h"

const char layer_name[] = "an accelerator for tests";

static cl_device_type changed(cl_device_type type) {
  const char* const name = getenv("TEST_ACCELERATOR");
  const bool is_gpu = name != NULL && strcmp(name, "gpu") == 0;
  const cl_device_type from = is_gpu ? CL_DEVICE_TYPE_GPU : CL_DEVICE_TYPE_CPU;
  return name != NULL && (type & from) != 0 ? CL_DEVICE_TYPE_ACCELERATOR : type;
}

static cl_device_type type_below(cl_device_id device) {
  cl_device_type type = 0;
  next.clGetDeviceInfo(device, CL_DEVICE_TYPE, sizeof type, &type, NULL);
  return type;
}

static cl_int device_info(cl_device_id device, cl_device_info param, size_t room,
                          void* out, size_t* size_ret) {
  if (param != CL_DEVICE_TYPE)
    return next.clGetDeviceInfo(device, param, room, out, size_ret);
  const cl_device_type type = changed(type_below(device));
  return answer(&type, sizeof type, room, out, size_ret);
}

static cl_int device_ids(cl_platform_id platform, cl_device_type type, cl_uint room,
                         cl_device_id* out, cl_uint* count) {
  enum { MOST = 64 };
  cl_device_id all[MOST];
  cl_uint there = 0, found = 0;
  const cl_int error =
      next.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, MOST, all, &there);
  if (error != CL_SUCCESS) return error;
  for (cl_uint i = 0; i < there && i < MOST; i++) {
    const bool wanted =
        type == CL_DEVICE_TYPE_ALL || (changed(type_below(all[i])) & type) != 0;
    if (!wanted) continue;
    if (out != NULL && found < room) out[found] = all[i];
    found++;
  }
  if (count != NULL) *count = found;
  return found > 0 ? CL_SUCCESS : CL_DEVICE_NOT_FOUND;
}

void hook_all(cl_icd_dispatch* table) {
  table->clGetDeviceInfo = device_info;
  table->clGetDeviceIDs = device_ids;
}

// SYCL lists CPUs and GPUs. This OpenCL layer makes it list accelerators, too.
//
// Note [Type of an accelerator]
// The type of an OpenCL device is a set of bits. Where it has ACCELERATOR, and neither
// CPU nor GPU, the layer reports GPU alone: SYCL ignores a device that has both bits. A
// query for GPUs lists these devices, too. A query for accelerators is the driver's
// own, so it tells which of the GPUs are accelerators, and no query beyond OpenCL's is
// needed.

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "opencl_layer.h"

const char layer_name[] = "xpurt accelerators";

// xpurt/accelerator_layer/__init__.py checks the values. Child processes inherit the
// list of layers, and may be told to do without this one.
static bool is_on(void) {
  const char* const wish = getenv("XPURT_ACCELERATORS");
  return wish == NULL || (strcasecmp(wish, "off") != 0 && strcmp(wish, "0") != 0);
}

static cl_int get_device_info(cl_device_id device, cl_device_info param, size_t room,
                              void* out, size_t* size_ret) {
  const cl_int error = next.clGetDeviceInfo(device, param, room, out, size_ret);
  if (param != CL_DEVICE_TYPE || error != CL_SUCCESS || out == NULL) return error;
  cl_device_type* const type = out;
  const cl_device_type listed = CL_DEVICE_TYPE_CPU | CL_DEVICE_TYPE_GPU;
  if ((*type & CL_DEVICE_TYPE_ACCELERATOR) != 0 && (*type & listed) == 0)
    *type = CL_DEVICE_TYPE_GPU;
  return CL_SUCCESS;
}

static cl_int get_device_ids(cl_platform_id platform, cl_device_type type, cl_uint room,
                             cl_device_id* out, cl_uint* count) {
  if ((type & CL_DEVICE_TYPE_GPU) != 0) type |= CL_DEVICE_TYPE_ACCELERATOR;
  return next.clGetDeviceIDs(platform, type, room, out, count);
}

void hook_all(cl_icd_dispatch* table) {
  if (!is_on()) return;
  table->clGetDeviceInfo = get_device_info;
  table->clGetDeviceIDs = get_device_ids;
}

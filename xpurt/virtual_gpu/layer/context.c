// Contexts: of the virtual GPU alone or of other devices alone, never mixed.

#include "layer.h"

#include <stdlib.h>
#include <string.h>

#include "coarse.h"
#include "memory.h"

typedef void (*ErrorCallback)(const char*, const void*, size_t, void*);

enum { MAX_PROPERTIES = 64, MAX_DEVICES = 256 };

// Replaces the value of CL_CONTEXT_PLATFORM in a list of properties that ends with 0.
static void set_platform(cl_context_properties* properties, cl_platform_id platform) {
  for (; *properties != 0; properties += 2)
    if (properties[0] == CL_CONTEXT_PLATFORM)
      properties[1] = (cl_context_properties)platform;
}

static bool names_our_platform(const cl_context_properties* properties) {
  for (; properties != NULL && *properties != 0; properties += 2)
    if (properties[0] == CL_CONTEXT_PLATFORM)
      return (cl_platform_id)properties[1] == virtual_gpu()->platform;
  return false;
}

static cl_context failed(cl_int code, cl_int* error) {
  if (error != NULL) *error = code;
  return NULL;
}

static void context_destroyed(cl_context context, void* unused) {
  (void)unused;
  forget_context(context);
  forget_coarse(context);
}

static cl_context create_gpu_context(const cl_context_properties* properties,
                                     ErrorCallback notify, void* user_data,
                                     cl_int* error) {
  const VirtualGpu* const ours = virtual_gpu();
  cl_context_properties below[MAX_PROPERTIES] = {0};
  if (properties != NULL) {
    size_t count = 0;
    while (properties[count] != 0) count += 2;
    if (count >= MAX_PROPERTIES) return failed(CL_INVALID_PROPERTY, error);
    memcpy(below, properties, count * sizeof *below);
    set_platform(below, ours->cpu_platform);
  }
  const cl_context context = next.clCreateContext(
      properties == NULL ? NULL : below, 1, &ours->device, notify, user_data, error);
  if (context != NULL && next.clSetContextDestructorCallback != NULL)
    next.clSetContextDestructorCallback(context, context_destroyed, NULL);
  return context;
}

static cl_context create_context(const cl_context_properties* properties, cl_uint count,
                                 const cl_device_id* devices, ErrorCallback notify,
                                 void* user_data, cl_int* error) {
  cl_uint ours = 0;
  for (cl_uint i = 0; devices != NULL && i < count; i++)
    ours += is_gpu_device(devices[i]);
  if (ours == 0 && !names_our_platform(properties))
    return next.clCreateContext(properties, count, devices, notify, user_data, error);
  if (ours != count)
    return failed(refuse(CL_INVALID_DEVICE, "clCreateContext",
                         "devices of two platforms share no context"),
                  error);
  return create_gpu_context(properties, notify, user_data, error);
}

static cl_context create_context_from_type(const cl_context_properties* properties,
                                           cl_device_type type, ErrorCallback notify,
                                           void* user_data, cl_int* error) {
  if (!names_our_platform(properties))
    return next.clCreateContextFromType(properties, type, notify, user_data, error);
  if ((type & (CL_DEVICE_TYPE_GPU | CL_DEVICE_TYPE_DEFAULT)) == 0)
    return failed(CL_DEVICE_NOT_FOUND, error);
  return create_gpu_context(properties, notify, user_data, error);
}

static cl_int get_context_info(cl_context context, cl_context_info param, size_t room,
                               void* out, size_t* size_ret) {
  size_t size = 0;
  const cl_int error = next.clGetContextInfo(context, param, room, out, &size);
  if (size_ret != NULL) *size_ret = size;
  if (error == CL_SUCCESS && param == CL_CONTEXT_PROPERTIES && out != NULL &&
      size > 0 && is_gpu_context(context))
    set_platform(out, virtual_gpu()->platform);
  return error;
}

bool is_gpu_context(cl_context context) {
  cl_device_id devices[MAX_DEVICES];
  return context != NULL &&
         next.clGetContextInfo(context, CL_CONTEXT_DEVICES, sizeof devices, devices,
                               NULL) == CL_SUCCESS &&
         is_gpu_device(devices[0]);
}

void hook_contexts(cl_icd_dispatch* table) {
  table->clCreateContext = create_context;
  table->clCreateContextFromType = create_context_from_type;
  table->clGetContextInfo = get_context_info;
}

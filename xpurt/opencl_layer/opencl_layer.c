#include "opencl_layer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

cl_icd_dispatch next;

static cl_icd_dispatch table;

#pragma GCC visibility push(default)

cl_int clGetLayerInfo(cl_layer_info param, size_t room, void* out, size_t* size_ret) {
  const cl_layer_api_version version = CL_LAYER_API_VERSION_100;
  switch (param) {
    case CL_LAYER_API_VERSION:
      return answer(&version, sizeof version, room, out, size_ret);
    case CL_LAYER_NAME:
      return answer(layer_name, strlen(layer_name) + 1, room, out, size_ret);
    default:
      return CL_INVALID_VALUE;
  }
}

cl_int clInitLayer(cl_uint num_entries, const cl_icd_dispatch* target,
                   cl_uint* num_entries_ret, const cl_icd_dispatch** layer) {
  if (target == NULL || num_entries_ret == NULL || layer == NULL)
    return CL_INVALID_VALUE;
  const size_t own_entries = sizeof table / sizeof(void*);
  const size_t entries = num_entries < own_entries ? num_entries : own_entries;
  memcpy(&next, target, entries * sizeof(void*));
  table = next;
  hook_all(&table);
  *num_entries_ret = (cl_uint)entries;
  *layer = &table;
  return CL_SUCCESS;
}

// Loaders differ: some call clInitLayer only, some call this pair instead.
cl_int clInitLayerWithProperties(cl_uint num_entries, const cl_icd_dispatch* target,
                                 cl_uint* num_entries_ret,
                                 const cl_icd_dispatch** layer,
                                 const cl_layer_properties* properties) {
  (void)properties;
  return clInitLayer(num_entries, target, num_entries_ret, layer);
}

// The library stays in memory until the process ends (it is linked with -z nodelete),
// so that the entry points of late calls still exist.
cl_int clDeinitLayer(void) {
  return CL_SUCCESS;
}

#pragma GCC visibility pop

cl_int answer(const void* value, size_t size, size_t room, void* out,
              size_t* size_ret) {
  if (out != NULL) {
    if (room < size) return CL_INVALID_VALUE;
    memcpy(out, value, size);
  }
  if (size_ret != NULL) *size_ret = size;
  return CL_SUCCESS;
}

cl_int refuse(cl_int code, const char* call, const char* why) {
  fprintf(stderr, "%s: %s refused: %s\n", layer_name, call, why);
  return code;
}

void* device_answer(cl_device_id device, cl_device_info param, size_t* size) {
  if (next.clGetDeviceInfo(device, param, 0, NULL, size)) return NULL;
  char* const value = calloc(*size + 1, 1);
  if (value == NULL || !next.clGetDeviceInfo(device, param, *size, value, NULL))
    return value;
  free(value);
  return NULL;
}

void* platform_answer(cl_platform_id platform, cl_platform_info param, size_t* size) {
  if (next.clGetPlatformInfo(platform, param, 0, NULL, size)) return NULL;
  char* const value = calloc(*size + 1, 1);
  if (value == NULL || !next.clGetPlatformInfo(platform, param, *size, value, NULL))
    return value;
  free(value);
  return NULL;
}

bool has_word(const char* words, const char* word) {
  const size_t length = strlen(word);
  for (const char* found = words; (found = strstr(found, word)) != NULL; found++) {
    const bool begins = found == words || found[-1] == ' ';
    if (begins && (found[length] == ' ' || found[length] == '\0')) return true;
  }
  return false;
}

cl_context context_of_queue(cl_command_queue queue) {
  cl_context context = NULL;
  next.clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof context, &context, NULL);
  return context;
}

cl_context context_of_kernel(cl_kernel kernel) {
  cl_context context = NULL;
  next.clGetKernelInfo(kernel, CL_KERNEL_CONTEXT, sizeof context, &context, NULL);
  return context;
}

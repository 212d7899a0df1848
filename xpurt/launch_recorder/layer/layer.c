#include "layer.h"

#include <pthread.h>
#include <stdlib.h>

const char layer_name[] = "xpurt launch recorder";

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void lock_records(void) {
  pthread_mutex_lock(&lock);
}

void unlock_records(void) {
  pthread_mutex_unlock(&lock);
}

void* below(cl_context context, const char* name) {
  cl_device_id device = NULL;
  cl_platform_id platform = NULL;
  // Contexts of SYCL have the devices of one platform, and here one device.
  next.clGetContextInfo(context, CL_CONTEXT_DEVICES, sizeof device, &device, NULL);
  next.clGetDeviceInfo(device, CL_DEVICE_PLATFORM, sizeof platform, &platform, NULL);
  return next.clGetExtensionFunctionAddressForPlatform(platform, name);
}

static void* get_extension_function(cl_platform_id platform, const char* name) {
  void* const function = next.clGetExtensionFunctionAddressForPlatform(platform, name);
  if (function == NULL) return NULL;
  void* const of_kernel = kernel_entry_point(name);
  void* const ours = of_kernel != NULL ? of_kernel : memory_entry_point(name);
  return ours != NULL ? ours : function;
}

void hook_all(cl_icd_dispatch* table) {
  hook_programs(table);
  if (getenv("RECORDED_LAUNCHES") == NULL) return;
  hook_kernels(table);
  hook_launches(table);
  table->clGetExtensionFunctionAddressForPlatform = get_extension_function;
}

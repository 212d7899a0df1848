// The layer's name, whether it is on, and the functions of the extension by their
// names.

#include "layer.h"

#include <stdlib.h>
#include <string.h>

#include "kernel_pointers.h"

const char layer_name[] = "xpurt USM on SVM";

// xpurt/usm_on_svm/__init__.py checks the values; child processes inherit the list of
// layers, and may be told to do without this one.
static bool is_on(void) {
  const char* const mode = getenv("XPURT_VIRTUAL_GPU");
  const char* const wish = getenv("XPURT_USM_ON_SVM");
  if (mode != NULL && strcmp(mode, "svm") == 0) return true;
  static const char* const words[] = {"1", "on", "true", "yes"};
  for (size_t i = 0; wish != NULL && i < sizeof words / sizeof *words; i++)
    if (strcmp(wish, words[i]) == 0) return true;
  return false;
}

void hook_all(cl_icd_dispatch* table) {
  if (!is_on()) return;
  hook_platforms(table);
  hook_contexts(table);
  hook_queues(table);
  hook_kernels(table);
}

void* usm_entry_point(const char* name) {
  static const struct {
    const char* name;
    void* function;
  } ENTRY_POINTS[] = {
      {"clHostMemAllocINTEL", (void*)usm_host_alloc},
      {"clDeviceMemAllocINTEL", (void*)usm_device_alloc},
      {"clSharedMemAllocINTEL", (void*)usm_shared_alloc},
      {"clMemFreeINTEL", (void*)usm_free},
      {"clMemBlockingFreeINTEL", (void*)usm_blocking_free},
      {"clGetMemAllocInfoINTEL", (void*)usm_info},
      {"clSetKernelArgMemPointerINTEL", (void*)usm_set_arg},
      {"clEnqueueMemFillINTEL", (void*)usm_fill},
      {"clEnqueueMemsetINTEL", (void*)usm_set},
      {"clEnqueueMemcpyINTEL", (void*)usm_copy},
      {"clEnqueueMigrateMemINTEL", (void*)usm_migrate},
      {"clEnqueueMemAdviseINTEL", (void*)usm_advise},
  };
  for (size_t i = 0; i < sizeof ENTRY_POINTS / sizeof *ENTRY_POINTS; i++)
    if (strcmp(name, ENTRY_POINTS[i].name) == 0) return ENTRY_POINTS[i].function;
  return NULL;
}

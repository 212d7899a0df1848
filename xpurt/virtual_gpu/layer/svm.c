// Calls with pointers: shared virtual memory (SVM) and kernel information. Strict mode
// refuses SVM, which a discrete GPU may lack. The calls that take a pointer accept USM,
// too, and translate it. In the mode svm the calls go to coarse.c.

#include <stdlib.h>

#include "coarse.h"
#include "memory.h"

static bool is_coarse_queue(cl_command_queue queue) {
  return settings.svm && is_gpu_context(context_of_queue(queue));
}

static bool refuses(cl_context context) {
  return settings.strict && is_gpu_context(context);
}

static cl_int no_svm(const char* call) {
  return refuse(CL_INVALID_OPERATION, call,
                "the device has no shared virtual memory; use USM");
}

static void* svm_alloc(cl_context context, cl_svm_mem_flags flags, size_t size,
                       cl_uint alignment) {
  if (settings.svm && is_gpu_context(context))
    return coarse_alloc(context, flags, size, alignment);
  if (!refuses(context)) return next.clSVMAlloc(context, flags, size, alignment);
  no_svm("clSVMAlloc");
  return NULL;
}

static cl_int svm_copy(cl_command_queue queue, cl_bool blocking, void* to,
                       const void* from, size_t size, cl_uint wait_count,
                       const cl_event* waits, cl_event* event) {
  if (is_coarse_queue(queue))
    return coarse_copy(queue, blocking, to, from, size, wait_count, waits, event);
  if (refuses(context_of_queue(queue))) return no_svm("clEnqueueSVMMemcpy");
  return next.clEnqueueSVMMemcpy(queue, blocking, to, from, size, wait_count, waits,
                                 event);
}

static cl_int svm_fill(cl_command_queue queue, void* to, const void* pattern,
                       size_t pattern_size, size_t size, cl_uint wait_count,
                       const cl_event* waits, cl_event* event) {
  if (is_coarse_queue(queue))
    return coarse_fill(queue, to, pattern, pattern_size, size, wait_count, waits,
                       event);
  if (refuses(context_of_queue(queue))) return no_svm("clEnqueueSVMMemFill");
  return next.clEnqueueSVMMemFill(queue, to, pattern, pattern_size, size, wait_count,
                                  waits, event);
}

static cl_int svm_map(cl_command_queue queue, cl_bool blocking, cl_map_flags flags,
                      void* address, size_t size, cl_uint wait_count,
                      const cl_event* waits, cl_event* event) {
  if (is_coarse_queue(queue))
    return coarse_map(queue, blocking, address, size, wait_count, waits, event);
  if (refuses(context_of_queue(queue))) return no_svm("clEnqueueSVMMap");
  return next.clEnqueueSVMMap(queue, blocking, flags, address, size, wait_count, waits,
                              event);
}

static cl_int svm_unmap(cl_command_queue queue, void* address, cl_uint wait_count,
                        const cl_event* waits, cl_event* event) {
  if (is_coarse_queue(queue))
    return coarse_unmap(queue, address, wait_count, waits, event);
  return next.clEnqueueSVMUnmap(queue, address, wait_count, waits, event);
}

static void svm_free(cl_context context, void* address) {
  if (settings.svm && is_gpu_context(context))
    coarse_free(context, address);
  else
    next.clSVMFree(context, address);
}

static cl_int svm_free_later(cl_command_queue queue, cl_uint count, void* addresses[],
                             void (*free_all)(cl_command_queue, cl_uint, void*[],
                                              void*),
                             void* user_data, cl_uint wait_count, const cl_event* waits,
                             cl_event* event) {
  if (is_coarse_queue(queue))
    return refuse(CL_INVALID_OPERATION, "clEnqueueSVMFree",
                  "the virtual GPU frees memory by clSVMFree only");
  return next.clEnqueueSVMFree(queue, count, addresses, free_all, user_data, wait_count,
                               waits, event);
}

static cl_int set_arg(cl_kernel kernel, cl_uint index, const void* address) {
  void* real = (void*)address;
  if (settings.svm && is_gpu_context(context_of_kernel(kernel)))
    return coarse_set_arg(kernel, index, address);
  if (settings.strict) {
    const cl_int error = translate(context_of_kernel(kernel), BY_KERNEL, address, 0,
                                   "clSetKernelArgSVMPointer", &real);
    if (error != CL_SUCCESS) return error;
  }
  return next.clSetKernelArgSVMPointer(kernel, index, real);
}

static cl_int set_exec_info(cl_kernel kernel, cl_kernel_exec_info param, size_t size,
                            const void* value) {
  const bool pointers = param == CL_KERNEL_EXEC_INFO_SVM_PTRS ||
                        param == CL_KERNEL_EXEC_INFO_USM_PTRS_INTEL;
  if (settings.svm && is_gpu_context(context_of_kernel(kernel)))
    return coarse_set_exec_info(kernel, param, size, value);
  if (!settings.strict || !pointers || value == NULL)
    return next.clSetKernelExecInfo(kernel, param, size, value);
  const cl_context context = context_of_kernel(kernel);
  const void* const* const seen = value;
  void** const real = malloc(size + 1);
  if (real == NULL) return CL_OUT_OF_HOST_MEMORY;
  cl_int error = CL_SUCCESS;
  for (size_t i = 0; i < size / sizeof *real && error == CL_SUCCESS; i++)
    error = translate(context, BY_KERNEL, seen[i], 0, "clSetKernelExecInfo", &real[i]);
  if (error == CL_SUCCESS) error = next.clSetKernelExecInfo(kernel, param, size, real);
  free(real);
  return error;
}

void hook_svm(cl_icd_dispatch* table) {
  table->clSVMAlloc = svm_alloc;
  table->clEnqueueSVMMemcpy = svm_copy;
  table->clEnqueueSVMMemFill = svm_fill;
  table->clEnqueueSVMMap = svm_map;
  table->clEnqueueSVMUnmap = svm_unmap;
  table->clSVMFree = svm_free;
  table->clEnqueueSVMFree = svm_free_later;
  table->clSetKernelArgSVMPointer = set_arg;
  table->clSetKernelExecInfo = set_exec_info;
}

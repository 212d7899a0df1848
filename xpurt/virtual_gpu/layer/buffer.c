// Buffers count as memory of the device. Images do not: no code here uses them.

#include <stdint.h>

#include "memory.h"

static void buffer_destroyed(cl_mem buffer, void* bytes) {
  (void)buffer;
  give_back_device_memory((size_t)(uintptr_t)bytes);
}

static cl_mem no_memory(cl_int* error) {
  if (error != NULL) *error = CL_MEM_OBJECT_ALLOCATION_FAILURE;
  return NULL;
}

static cl_mem count(cl_mem buffer, size_t bytes) {
  if (buffer == NULL)
    give_back_device_memory(bytes);
  else
    next.clSetMemObjectDestructorCallback(buffer, buffer_destroyed,
                                          (void*)(uintptr_t)bytes);
  return buffer;
}

static cl_mem create_buffer(cl_context context, cl_mem_flags flags, size_t size,
                            void* host, cl_int* error) {
  if (!is_gpu_context(context))
    return next.clCreateBuffer(context, flags, size, host, error);
  if (!take_device_memory(size)) return no_memory(error);
  return count(next.clCreateBuffer(context, flags, size, host, error), size);
}

static cl_mem create_buffer_with_properties(cl_context context,
                                            const cl_mem_properties* properties,
                                            cl_mem_flags flags, size_t size, void* host,
                                            cl_int* error) {
  if (!is_gpu_context(context))
    return next.clCreateBufferWithProperties(context, properties, flags, size, host,
                                             error);
  if (!take_device_memory(size)) return no_memory(error);
  return count(
      next.clCreateBufferWithProperties(context, properties, flags, size, host, error),
      size);
}

void hook_buffers(cl_icd_dispatch* table) {
  table->clCreateBuffer = create_buffer;
  table->clCreateBufferWithProperties = create_buffer_with_properties;
}

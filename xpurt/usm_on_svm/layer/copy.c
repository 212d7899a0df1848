// Copies, fills and hints.

#include <string.h>

#include "memory.h"

// Nothing to do but the order of events.
static cl_int mark(cl_command_queue queue, cl_uint wait_count, const cl_event* waits,
                   cl_event* event) {
  return next.clEnqueueMarkerWithWaitList(queue, wait_count, waits, event);
}

cl_int usm_copy(cl_command_queue queue, cl_bool blocking, void* to, const void* from,
                size_t size, cl_uint wait_count, const cl_event* waits,
                cl_event* event) {
  if (size > 0)
    return next.clEnqueueSVMMemcpy(queue, blocking, to, from, size, wait_count, waits,
                                   event);
  const cl_int error = mark(queue, wait_count, waits, event);
  return error == CL_SUCCESS && blocking ? next.clFinish(queue) : error;
}

// Memory of malloc is filled in its mirror and copied back: no call of OpenCL fills it.
static cl_int fill_mirrored(cl_command_queue queue, Allocation* of, char* to,
                            const void* pattern, size_t pattern_size, size_t size,
                            cl_uint wait_count, const cl_event* waits,
                            cl_event* event) {
  if (!make_mirror(of)) return CL_OUT_OF_RESOURCES;
  char* const mirror = of->mirror + (to - of->range.address);
  cl_event ready = NULL, filled = NULL, copied = NULL;
  cl_int error = mark(queue, wait_count, waits, &ready);
  const cl_event both[] = {ready, of->last_use};
  if (error == CL_SUCCESS)
    error = next.clEnqueueSVMMemFill(queue, mirror, pattern, pattern_size, size,
                                     of->last_use == NULL ? 1 : 2, both, &filled);
  if (error == CL_SUCCESS)
    error =
        next.clEnqueueSVMMemcpy(queue, CL_FALSE, to, mirror, size, 1, &filled, &copied);
  if (ready != NULL) next.clReleaseEvent(ready);
  if (filled != NULL) next.clReleaseEvent(filled);
  if (error != CL_SUCCESS) return error;
  if (of->last_use != NULL) next.clReleaseEvent(of->last_use);
  of->last_use = copied;
  if (event != NULL) next.clRetainEvent(*event = copied);
  return CL_SUCCESS;
}

cl_int usm_fill(cl_command_queue queue, void* to, const void* pattern,
                size_t pattern_size, size_t size, cl_uint wait_count,
                const cl_event* waits, cl_event* event) {
  if (size == 0) return mark(queue, wait_count, waits, event);
  const cl_context context = context_of_queue(queue);
  lock_memory();
  Allocation* const of = allocation_around(context, to);
  const cl_int error = of == NULL || of->is_svm
                           ? next.clEnqueueSVMMemFill(queue, to, pattern, pattern_size,
                                                      size, wait_count, waits, event)
                           : fill_mirrored(queue, of, to, pattern, pattern_size, size,
                                           wait_count, waits, event);
  unlock_memory();
  return error;
}

cl_int usm_set(cl_command_queue queue, void* to, cl_int value, size_t size,
               cl_uint wait_count, const cl_event* waits, cl_event* event) {
  const unsigned char byte = (unsigned char)value;
  return usm_fill(queue, to, &byte, sizeof byte, size, wait_count, waits, event);
}

// Hints: where SVM lies is the driver's business.
cl_int usm_migrate(cl_command_queue queue, const void* address, size_t size,
                   cl_mem_migration_flags flags, cl_uint wait_count,
                   const cl_event* waits, cl_event* event) {
  (void)address, (void)size, (void)flags;
  return mark(queue, wait_count, waits, event);
}

cl_int usm_advise(cl_command_queue queue, const void* address, size_t size,
                  cl_mem_advice_intel advice, cl_uint wait_count, const cl_event* waits,
                  cl_event* event) {
  (void)address, (void)size, (void)advice;
  return mark(queue, wait_count, waits, event);
}

// XPURT_VIRTUAL_GPU_FAIL_AFTER, and xpurt_virtual_gpu_fail(): a device that fails.
//
// A failed device accepts no kernel, copy or fill any more, in any queue. Work that was
// submitted before ends as usual. Memory is still allocated and freed, and waits
// return, as on a device that was reset.
//
// A device that loses its work accepts kernels, and does not run them: their events end
// in an error, and so do waits. An event of an in-order queue ends after all that was
// submitted before it, and so does one with an error: the program may free the memory
// of that work then.

#include <stdatomic.h>

#include "layer.h"

enum { WORKS, TAKES_NOTHING, LOSES_WORK };
static atomic_int state;
static atomic_bool has_lost;
static atomic_uint_least64_t kernels_run;

static clEnqueueNDRangeKernel_t* run_kernel;  // that of delay.c, if there is a delay
static clEnqueueTask_t* run_task;
static clFinish_t* finish_queue;
static clEnqueueBarrierWithWaitList_t* put_barrier;
static clEnqueueMarkerWithWaitList_t* put_marker;

// For xpurt.testing. Applies from now on. `how` is one of the states above.
__attribute__((visibility("default"))) void xpurt_virtual_gpu_fail(int how) {
  atomic_store(&state, how);
  atomic_store(&has_lost, false);
}

bool takes_no_work(cl_command_queue queue) {
  return (atomic_load(&state) == TAKES_NOTHING || atomic_load(&has_lost)) &&
         is_gpu_context(context_of_queue(queue));
}

// Whether the device accepts one more kernel.
static bool takes_kernel(cl_command_queue queue) {
  if (!is_gpu_context(context_of_queue(queue))) return true;
  if (settings.fail_after > 0 &&
      atomic_fetch_add(&kernels_run, 1) >= settings.fail_after)
    atomic_store(&state, TAKES_NOTHING);
  return atomic_load(&state) != TAKES_NOTHING;
}

static bool loses_kernel(cl_command_queue queue) {
  return atomic_load(&state) == LOSES_WORK && is_gpu_context(context_of_queue(queue));
}

static void CL_CALLBACK end_lost(cl_event before, cl_int status, void* lost) {
  (void)status;
  next.clSetUserEventStatus(lost, CL_OUT_OF_RESOURCES);
  next.clReleaseEvent(lost);
  next.clReleaseEvent(before);
}

// Loses a kernel: the event ends in an error, after what the queue has got before.
static cl_int lose(cl_command_queue queue, cl_event* event) {
  atomic_store(&has_lost, true);
  if (event == NULL) return CL_SUCCESS;
  cl_int error = CL_SUCCESS;
  const cl_event lost = next.clCreateUserEvent(context_of_queue(queue), &error);
  if (error != CL_SUCCESS) return error;
  cl_event before = NULL;
  error = put_marker(queue, 0, NULL, &before);
  if (error != CL_SUCCESS) {
    next.clReleaseEvent(lost);
    return error;
  }
  next.clRetainEvent(lost);
  error = next.clSetEventCallback(before, CL_COMPLETE, end_lost, lost);
  if (error != CL_SUCCESS) end_lost(before, error, lost);
  *event = lost;
  return next.clFlush(queue);
}

static cl_int enqueue_kernel(cl_command_queue queue, cl_kernel kernel, cl_uint dims,
                             const size_t* offset, const size_t* global,
                             const size_t* local, cl_uint wait_count,
                             const cl_event* waits, cl_event* event) {
  if (!takes_kernel(queue)) return CL_OUT_OF_RESOURCES;
  if (loses_kernel(queue)) return lose(queue, event);
  return run_kernel(queue, kernel, dims, offset, global, local, wait_count, waits,
                    event);
}

static cl_int enqueue_task(cl_command_queue queue, cl_kernel kernel, cl_uint wait_count,
                           const cl_event* waits, cl_event* event) {
  if (!takes_kernel(queue)) return CL_OUT_OF_RESOURCES;
  if (loses_kernel(queue)) return lose(queue, event);
  return run_task(queue, kernel, wait_count, waits, event);
}

// Work that follows lost work in its queue ends in the same error.
static bool follows_lost(cl_command_queue queue) {
  return atomic_load(&has_lost) && is_gpu_context(context_of_queue(queue));
}

static cl_int finish(cl_command_queue queue) {
  const cl_int ended = finish_queue(queue);
  return follows_lost(queue) ? CL_OUT_OF_RESOURCES : ended;
}

static cl_int enqueue_barrier(cl_command_queue queue, cl_uint wait_count,
                              const cl_event* waits, cl_event* event) {
  if (follows_lost(queue)) return lose(queue, event);
  return put_barrier(queue, wait_count, waits, event);
}

static cl_int enqueue_marker(cl_command_queue queue, cl_uint wait_count,
                             const cl_event* waits, cl_event* event) {
  if (follows_lost(queue)) return lose(queue, event);
  return put_marker(queue, wait_count, waits, event);
}

void hook_failure(cl_icd_dispatch* table) {
  run_kernel = table->clEnqueueNDRangeKernel;
  run_task = table->clEnqueueTask;
  finish_queue = table->clFinish;
  put_barrier = table->clEnqueueBarrierWithWaitList;
  put_marker = table->clEnqueueMarkerWithWaitList;
  table->clEnqueueNDRangeKernel = enqueue_kernel;
  table->clEnqueueTask = enqueue_task;
  table->clFinish = finish;
  table->clEnqueueBarrierWithWaitList = enqueue_barrier;
  table->clEnqueueMarkerWithWaitList = enqueue_marker;
}

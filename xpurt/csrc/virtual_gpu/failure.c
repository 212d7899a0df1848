// XPURT_VIRTUAL_GPU_FAIL_AFTER, and xpurt_virtual_gpu_fail(): a device that fails.
//
// A failed device takes no kernel, copy or fill any more, whatever the queue; what it
// was given before ends as usual. Memory is still given out and taken back, and waits
// return, as on a device that was reset.

#include <stdatomic.h>

#include "layer.h"

static atomic_bool has_failed;
static atomic_uint_least64_t kernels_run;

static clEnqueueNDRangeKernel_t* run_kernel;  // the delayed one, if there is a delay
static clEnqueueTask_t* run_task;

// For xpurt.testing: from now on, or no more.
__attribute__((visibility("default"))) void xpurt_virtual_gpu_fail(int fails) {
  atomic_store(&has_failed, fails != 0);
}

bool takes_no_work(cl_command_queue queue) {
  return atomic_load(&has_failed) && is_gpu_context(context_of_queue(queue));
}

// Whether the device takes one kernel more.
static bool takes_kernel(cl_command_queue queue) {
  if (!is_gpu_context(context_of_queue(queue))) return true;
  if (settings.fail_after > 0 &&
      atomic_fetch_add(&kernels_run, 1) >= settings.fail_after)
    atomic_store(&has_failed, true);
  return !atomic_load(&has_failed);
}

static cl_int enqueue_kernel(cl_command_queue queue, cl_kernel kernel, cl_uint dims,
                             const size_t* offset, const size_t* global,
                             const size_t* local, cl_uint wait_count,
                             const cl_event* waits, cl_event* event) {
  if (!takes_kernel(queue)) return CL_OUT_OF_RESOURCES;
  return run_kernel(queue, kernel, dims, offset, global, local, wait_count, waits,
                    event);
}

static cl_int enqueue_task(cl_command_queue queue, cl_kernel kernel, cl_uint wait_count,
                           const cl_event* waits, cl_event* event) {
  if (!takes_kernel(queue)) return CL_OUT_OF_RESOURCES;
  return run_task(queue, kernel, wait_count, waits, event);
}

void hook_failure(cl_icd_dispatch* table) {
  run_kernel = table->clEnqueueNDRangeKernel;
  run_task = table->clEnqueueTask;
  table->clEnqueueNDRangeKernel = enqueue_kernel;
  table->clEnqueueTask = enqueue_task;
}

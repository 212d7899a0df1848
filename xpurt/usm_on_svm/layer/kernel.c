// Kernels: their arguments, the list of memory that they may use, and their runs.

#include <stdlib.h>
#include <string.h>

#include "kernel_pointers.h"
#include "memory.h"

static bool is_indirect(cl_kernel_exec_info param) {
  return param == CL_KERNEL_EXEC_INFO_INDIRECT_HOST_ACCESS_INTEL ||
         param == CL_KERNEL_EXEC_INFO_INDIRECT_DEVICE_ACCESS_INTEL ||
         param == CL_KERNEL_EXEC_INFO_INDIRECT_SHARED_ACCESS_INTEL;
}

static clCreateKernel_t* create_below;  // that of kernel_pointers.c

// Whether the program was built with this option: its kernels use no memory but their
// arguments, and use none at all of one that is null.
static bool uses_arguments_only(cl_program program) {
  cl_device_id device = NULL;
  size_t size = 0;
  if (next.clGetProgramInfo(program, CL_PROGRAM_DEVICES, sizeof device, &device,
                            NULL) ||
      next.clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_OPTIONS, 0, NULL,
                                 &size))
    return false;
  char* const options = calloc(size + 1, 1);
  const bool found =
      options != NULL &&
      !next.clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_OPTIONS, size,
                                  options, NULL) &&
      has_word(options, "-DXPURT_ARGUMENTS_ONLY");
  free(options);
  return found;
}

// Some drivers know the program of a kernel no more once it is released, so it is asked
// here.
static cl_kernel create_kernel(cl_program program, const char* name, cl_int* error) {
  const cl_kernel kernel = create_below(program, name, error);
  KernelPointers* const of = kernel == NULL ? NULL : pointers_of(kernel);
  if (of != NULL) of->arguments_only = uses_arguments_only(program);
  return kernel;
}

cl_int usm_set_arg(cl_kernel kernel, cl_uint index, const void* address) {
  KernelPointers* const pointers = pointers_of(kernel);
  const cl_context context = context_of_kernel(kernel);
  if (pointers == NULL) return CL_INVALID_KERNEL;
  const void* real = address;
  cl_int error = CL_SUCCESS;
  lock_memory();
  Allocation* const of = allocation_around(context, address);
  const bool mirrored = of != NULL && !of->is_svm;
  if (mirrored) {
    if (make_mirror(of))
      real = of->mirror + ((const char*)address - of->range.address);
    else
      error = CL_OUT_OF_RESOURCES;
  }
  // NVIDIA's driver refuses a null pointer to SVM.
  if (address == NULL && pointers->arguments_only) real = empty_place(context);
  unlock_memory();
  if (real == NULL) {
    keep_argument(pointers, index, NULL);
    return next.clSetKernelArg(kernel, index, sizeof(cl_mem), NULL);
  }
  // Only the arguments with a mirror need more than the driver does.
  if (error == CL_SUCCESS && !keep_argument(pointers, index, mirrored ? address : NULL))
    error = CL_OUT_OF_HOST_MEMORY;
  return error == CL_SUCCESS ? next.clSetKernelArgSVMPointer(kernel, index, real)
                             : error;
}

static cl_int set_svm_arg(cl_kernel kernel, cl_uint index, const void* address) {
  KernelPointers* const pointers = pointers_of(kernel);
  if (pointers != NULL) keep_argument(pointers, index, NULL);
  return next.clSetKernelArgSVMPointer(kernel, index, address);
}

static cl_int set_exec_info(cl_kernel kernel, cl_kernel_exec_info param, size_t size,
                            const void* value) {
  const bool list = param == CL_KERNEL_EXEC_INFO_USM_PTRS_INTEL ||
                    param == CL_KERNEL_EXEC_INFO_SVM_PTRS;
  KernelPointers* const of = pointers_of(kernel);
  if ((!list && !is_indirect(param)) || of == NULL ||
      !facts_of(context_of_kernel(kernel)).served)
    return next.clSetKernelExecInfo(kernel, param, size, value);
  if (is_indirect(param)) {
    if (size != sizeof(cl_bool) || value == NULL) return CL_INVALID_VALUE;
    // SYCL sets the three one after the other, to one value.
    of->indirect = *(const cl_bool*)value != CL_FALSE && !of->arguments_only;
  } else {
    if (value == NULL || size % sizeof(void*) != 0) return CL_INVALID_VALUE;
    if (!keep_listed(of, value, size / sizeof(void*))) return CL_OUT_OF_HOST_MEMORY;
  }
  of->listed_change = 0;
  return CL_SUCCESS;
}

// Under the lock: lists the memory for the next run, unless it is listed already.
static cl_int list_memory(cl_kernel kernel, cl_context context, KernelPointers* of) {
  if (of->listed_change == memory_change()) return CL_SUCCESS;
  if (!of->indirect && of->listed_count == 0) return CL_SUCCESS;
  size_t all_count = 0;
  const void* const* const all = of->indirect ? all_svm(context, &all_count) : NULL;
  if (of->indirect && all == NULL) return CL_OUT_OF_HOST_MEMORY;
  const size_t count = all_count + of->listed_count;
  const void** const both = malloc(count * sizeof *both + 1);
  if (both == NULL) return CL_OUT_OF_HOST_MEMORY;
  if (all_count > 0) memcpy(both, all, all_count * sizeof *both);
  if (of->listed_count > 0)
    memcpy(both + all_count, of->listed, of->listed_count * sizeof *both);
  cl_int error = CL_SUCCESS;
  if (count > 0)
    error = next.clSetKernelExecInfo(kernel, CL_KERNEL_EXEC_INFO_SVM_PTRS,
                                     count * sizeof *both, both);
  free(both);
  if (error == CL_SUCCESS) of->listed_change = memory_change();
  return error;
}

typedef struct {
  cl_command_queue queue;
  cl_kernel kernel;
  cl_uint dims;
  const size_t *offset, *global, *local;
} Run;

static cl_int run_below(const Run* run, cl_uint wait_count, const cl_event* waits,
                        cl_event* event) {
  return next.clEnqueueNDRangeKernel(run->queue, run->kernel, run->dims, run->offset,
                                     run->global, run->local, wait_count, waits, event);
}

static void release_events(cl_event* events, size_t count) {
  for (size_t i = 0; i < count; i++) next.clReleaseEvent(events[i]);
}

// The allocations with a mirror among the arguments, each once; as many as `*count`.
// The caller frees the array.
static Allocation** mirrored_arguments(cl_context context, const KernelPointers* of,
                                       size_t* count) {
  Allocation** const found = calloc(of->argument_count + 1, sizeof *found);
  *count = 0;
  for (size_t i = 0; found != NULL && i < of->argument_count; i++) {
    Allocation* const each = allocation_around(context, of->arguments[i].address);
    bool is_new = each != NULL && each->mirror != NULL;
    for (size_t j = 0; j < *count; j++) is_new &= found[j] != each;
    if (is_new) found[(*count)++] = each;
  }
  return found;
}

// See Note [Host memory] in layer.h. `before` has room for 1 event and 2 for each
// allocation; it is the caller's, as `done` is.
static cl_int run_mirrored(const Run* run, Allocation** with, size_t count,
                           cl_uint wait_count, const cl_event* waits, cl_event* events,
                           cl_event* event) {
  cl_event* const in = events;           // copies to the mirrors
  cl_event* const out = events + count;  // copies back
  cl_event ready = NULL, ran = NULL;
  size_t ins = 0, outs = 0;
  cl_int error =
      next.clEnqueueMarkerWithWaitList(run->queue, wait_count, waits, &ready);
  for (; error == CL_SUCCESS && ins < count; ins += error == CL_SUCCESS) {
    const Allocation* const of = with[ins];
    const cl_event both[] = {ready, of->last_use};
    error = next.clEnqueueSVMMemcpy(run->queue, CL_FALSE, of->mirror, of->range.address,
                                    of->range.size, of->last_use == NULL ? 1 : 2, both,
                                    &in[ins]);
  }
  if (error == CL_SUCCESS) error = run_below(run, (cl_uint)count, in, &ran);
  for (; error == CL_SUCCESS && outs < count; outs += error == CL_SUCCESS)
    error = next.clEnqueueSVMMemcpy(run->queue, CL_FALSE, with[outs]->range.address,
                                    with[outs]->mirror, with[outs]->range.size, 1, &ran,
                                    &out[outs]);
  for (size_t i = 0; i < outs; i++) {
    if (with[i]->last_use != NULL) next.clReleaseEvent(with[i]->last_use);
    next.clRetainEvent(with[i]->last_use = out[i]);
  }
  if (error == CL_SUCCESS && event != NULL)
    error = next.clEnqueueMarkerWithWaitList(run->queue, (cl_uint)count, out, event);
  release_events(in, ins);
  release_events(out, outs);
  if (ran != NULL) next.clReleaseEvent(ran);
  if (ready != NULL) next.clReleaseEvent(ready);
  return error;
}

static cl_int run_kernel(const Run* run, cl_context context, KernelPointers* of,
                         cl_uint wait_count, const cl_event* waits, cl_event* event) {
  cl_int error = list_memory(run->kernel, context, of);
  if (error != CL_SUCCESS || of->argument_count == 0)
    return error != CL_SUCCESS ? error : run_below(run, wait_count, waits, event);
  size_t count = 0;
  Allocation** const with = mirrored_arguments(context, of, &count);
  cl_event* const events = calloc(2 * count + 1, sizeof *events);
  if (with == NULL || events == NULL)
    error = CL_OUT_OF_HOST_MEMORY;
  else if (count == 0)
    error = run_below(run, wait_count, waits, event);
  else
    error = run_mirrored(run, with, count, wait_count, waits, events, event);
  free(with);
  free(events);
  return error;
}

static cl_int enqueue_kernel(cl_command_queue queue, cl_kernel kernel, cl_uint dims,
                             const size_t* offset, const size_t* global,
                             const size_t* local, cl_uint wait_count,
                             const cl_event* waits, cl_event* event) {
  const Run run = {queue, kernel, dims, offset, global, local};
  KernelPointers* const of = pointers_of(kernel);
  if (of == NULL || (!of->indirect && of->listed_count == 0 && of->argument_count == 0))
    return run_below(&run, wait_count, waits, event);
  const cl_context context = context_of_queue(queue);
  lock_memory();
  const cl_int error = run_kernel(&run, context, of, wait_count, waits, event);
  unlock_memory();
  return error;
}

static cl_int enqueue_task(cl_command_queue queue, cl_kernel kernel, cl_uint wait_count,
                           const cl_event* waits, cl_event* event) {
  const size_t one = 1;
  return enqueue_kernel(queue, kernel, 1, NULL, &one, &one, wait_count, waits, event);
}

void hook_kernels(cl_icd_dispatch* table) {
  hook_kernel_pointers(table);
  create_below = table->clCreateKernel;
  table->clCreateKernel = create_kernel;
  table->clSetKernelArgSVMPointer = set_svm_arg;
  table->clSetKernelExecInfo = set_exec_info;
  table->clEnqueueNDRangeKernel = enqueue_kernel;
  table->clEnqueueTask = enqueue_task;
}

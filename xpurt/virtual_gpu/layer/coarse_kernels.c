// Kernels of the mode svm: each run opens the memory of its arguments and of its list.

#include <stdlib.h>

#include "coarse.h"
#include "kernel_pointers.h"

static clEnqueueNDRangeKernel_t* run_kernel;  // that of failure.c

cl_int coarse_set_arg(cl_kernel kernel, cl_uint index, const void* address) {
  KernelPointers* const of = pointers_of(kernel);
  if (address == NULL)  // as NVIDIA's driver does
    return refuse(CL_INVALID_ARG_VALUE, "clSetKernelArgSVMPointer",
                  "null is no address of SVM; set a null buffer by clSetKernelArg");
  if (of == NULL || !keep_argument(of, index, address)) return CL_OUT_OF_HOST_MEMORY;
  return next.clSetKernelArgSVMPointer(kernel, index, address);
}

static cl_int set_arg(cl_kernel kernel, cl_uint index, size_t size, const void* value) {
  const KernelPointers* const of = pointers_of(kernel);
  for (size_t i = 0; of != NULL && i < of->argument_count; i++)
    if (of->arguments[i].index == index)  // as NVIDIA's driver seems to do
      return refuse(CL_INVALID_ARG_VALUE, "clSetKernelArg",
                    "the argument was a pointer to SVM before");
  return next.clSetKernelArg(kernel, index, size, value);
}

cl_int coarse_set_exec_info(cl_kernel kernel, cl_kernel_exec_info param, size_t size,
                            const void* value) {
  KernelPointers* const of = pointers_of(kernel);
  if (param != CL_KERNEL_EXEC_INFO_SVM_PTRS || of == NULL || size % sizeof(void*) != 0)
    return refuse(CL_INVALID_VALUE, "clSetKernelExecInfo",
                  "the device takes a list of SVM pointers only");
  return keep_listed(of, value, size / sizeof(void*)) ? CL_SUCCESS
                                                      : CL_OUT_OF_HOST_MEMORY;
}

static cl_int enqueue_kernel(cl_command_queue queue, cl_kernel kernel, cl_uint dims,
                             const size_t* offset, const size_t* global,
                             const size_t* local, cl_uint wait_count,
                             const cl_event* waits, cl_event* event) {
  const cl_context context = context_of_queue(queue);
  const KernelPointers* const of = is_gpu_context(context) ? pointers_of(kernel) : NULL;
  if (of == NULL)
    return run_kernel(queue, kernel, dims, offset, global, local, wait_count, waits,
                      event);
  Use* const use = begin_use(context, "clEnqueueNDRangeKernel");
  if (use == NULL) return CL_OUT_OF_HOST_MEMORY;
  cl_int error = CL_SUCCESS;
  for (size_t i = 0; i < of->argument_count && error == CL_SUCCESS; i++)
    error = use_range(use, of->arguments[i].address, 0, MUST_BE_SVM);
  for (size_t i = 0; i < of->listed_count && error == CL_SUCCESS; i++)
    error = use_range(use, of->listed[i], 0, MUST_BE_SVM);
  cl_event done = NULL;
  if (error == CL_SUCCESS)
    error = run_kernel(queue, kernel, dims, offset, global, local, wait_count, waits,
                       &done);
  if (event != NULL) *event = done;
  return end_use(use, error, done, event == NULL);
}

static cl_int enqueue_task(cl_command_queue queue, cl_kernel kernel, cl_uint wait_count,
                           const cl_event* waits, cl_event* event) {
  const size_t one = 1;
  return enqueue_kernel(queue, kernel, 1, NULL, &one, &one, wait_count, waits, event);
}

void hook_coarse_kernels(cl_icd_dispatch* table) {
  run_kernel = table->clEnqueueNDRangeKernel;
  hook_kernel_pointers(table);
  table->clEnqueueNDRangeKernel = enqueue_kernel;
  table->clEnqueueTask = enqueue_task;
  table->clSetKernelArg = set_arg;
}

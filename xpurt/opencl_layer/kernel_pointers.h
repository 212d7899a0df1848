// The pointers that a kernel has got, by its arguments and by clSetKernelExecInfo: the
// memory that its next run may use.
//
// A record is made with the kernel and lives as long as it. Calls that set arguments of
// one kernel are not thread-safe in OpenCL, and so are these.

#ifndef XPURT_OPENCL_LAYER_KERNEL_POINTERS_H_
#define XPURT_OPENCL_LAYER_KERNEL_POINTERS_H_

#include "opencl_layer.h"

typedef struct {
  cl_uint index;
  const void* address;
} PointerArgument;

typedef struct KernelPointers {
  cl_kernel kernel;
  cl_uint references;
  PointerArgument* arguments;
  size_t argument_count;
  const void** listed;  // by clSetKernelExecInfo
  size_t listed_count;
  bool indirect;           // it may use memory that is neither argument nor listed
  uint64_t listed_change;  // for the layer: which state of its memory is listed
  bool arguments_only;     // for the layer: what the kernel's program says
  struct KernelPointers* next;
} KernelPointers;

// The record of a kernel; null if the kernel was made past this layer.
KernelPointers* pointers_of(cl_kernel kernel);

// Keeps an argument; null removes it. False if there is no memory.
bool keep_argument(KernelPointers* of, cl_uint index, const void* address);
bool keep_listed(KernelPointers* of, const void* const* listed, size_t count);

void hook_kernel_pointers(cl_icd_dispatch* table);

#endif  // XPURT_OPENCL_LAYER_KERNEL_POINTERS_H_

// Unified shared memory (cl_intel_unified_shared_memory, USM) for OpenCL devices that
// have only shared virtual memory (SVM, OpenCL 2.0): an OpenCL layer.
//
// Note [USM from SVM]
// A platform is served if none of its devices has USM, and at least one has SVM with
// coarse-grained buffers, which is the least that SVM may be. The memory is then:
//
// | USM | the device has fine-grained buffers | coarse-grained alone |
// |---|---|---|
// | device | clSVMAlloc, coarse-grained; fine-grained on a CPU | the same |
// | host | clSVMAlloc, fine-grained | memory of malloc, see Note [Host memory] |
// | shared | clSVMAlloc, fine-grained | none: capabilities 0, and a refusal |
//
// Coarse-grained memory is never mapped: the host does not touch device USM, and a copy
// between it and memory of the host is clEnqueueSVMMemcpy, which takes both. A kernel
// may use SVM that is an argument or in the list of clSetKernelExecInfo. A kernel that
// has an indirect access set, as SYCL sets it for each, gets the list of all live SVM
// of its context. The list is made again only after an allocation or a free. A program
// that is built with -DXPURT_ARGUMENTS_ONLY says that its kernels have no such access.
//
// Note [Null pointers]
// A pointer of an operand without elements is null. NVIDIA's driver (580.159) refuses
// null as a pointer to SVM. It takes a null buffer, but not in place of a pointer that
// an earlier run of the kernel had, as far as was seen. So a kernel of such a program
// gets an address in SVM at which nothing is, and one of another program, which may ask
// whether a pointer is null, gets a null buffer.
//
// Note [Host memory]
// On coarse-grained SVM the host may use memory only while it is mapped, and a kernel
// only while it is not; USM lets both use host memory. So host USM is memory of malloc.
// Copies take it as it is. A kernel that has it as an argument gets a mirror in SVM:
// the memory is copied there before the kernel, and back behind it, and the kernel's
// event is that of the copy back. The runs of kernels with the same allocation follow
// each other, in whichever queues they are, as one's copy to the mirror would undo
// another's result. What the host writes during a run is lost. A kernel that finds the
// address in memory cannot use it: only an argument is replaced.
//
// Each file hooks the entry points of one concern into the layer's table, and calls the
// table below through `next`.

#ifndef XPURT_USM_ON_SVM_LAYER_H_
#define XPURT_USM_ON_SVM_LAYER_H_

#include "opencl_layer.h"

// What the layer gives a context; `served` is false for contexts that it leaves alone.
typedef struct {
  cl_context context;
  bool served;
  bool has_fine_grain;  // all its devices have fine-grained buffers
  bool has_atomics;
  bool is_cpu;  // all its devices are CPUs
} ContextFacts;

// The SVM of a device of a served platform; 0 if the layer does not serve the device.
cl_device_svm_capabilities served_svm(cl_device_id device);
bool is_served_platform(cl_platform_id platform);
ContextFacts facts_of(cl_context context);

// Waits for everything in the queues of a context.
cl_int finish_queues(cl_context context);

void forget_memory_of(cl_context context);

void hook_platforms(cl_icd_dispatch* table);
void hook_contexts(cl_icd_dispatch* table);
void hook_queues(cl_icd_dispatch* table);
void hook_kernels(cl_icd_dispatch* table);

// The function of the extension with this name; null if it has none.
void* usm_entry_point(const char* name);

// The functions of the extension, by the files that define them.
void* usm_host_alloc(cl_context context, const cl_mem_properties_intel* properties,
                     size_t size, cl_uint alignment, cl_int* error);
void* usm_device_alloc(cl_context context, cl_device_id device,
                       const cl_mem_properties_intel* properties, size_t size,
                       cl_uint alignment, cl_int* error);
void* usm_shared_alloc(cl_context context, cl_device_id device,
                       const cl_mem_properties_intel* properties, size_t size,
                       cl_uint alignment, cl_int* error);
cl_int usm_free(cl_context context, void* address);
cl_int usm_blocking_free(cl_context context, void* address);
cl_int usm_info(cl_context context, const void* address, cl_mem_info_intel param,
                size_t room, void* out, size_t* size_ret);
cl_int usm_set_arg(cl_kernel kernel, cl_uint index, const void* address);
cl_int usm_copy(cl_command_queue queue, cl_bool blocking, void* to, const void* from,
                size_t size, cl_uint wait_count, const cl_event* waits,
                cl_event* event);
cl_int usm_fill(cl_command_queue queue, void* to, const void* pattern,
                size_t pattern_size, size_t size, cl_uint wait_count,
                const cl_event* waits, cl_event* event);
cl_int usm_set(cl_command_queue queue, void* to, cl_int value, size_t size,
               cl_uint wait_count, const cl_event* waits, cl_event* event);
cl_int usm_migrate(cl_command_queue queue, const void* address, size_t size,
                   cl_mem_migration_flags flags, cl_uint wait_count,
                   const cl_event* waits, cl_event* event);
cl_int usm_advise(cl_command_queue queue, const void* address, size_t size,
                  cl_mem_advice_intel advice, cl_uint wait_count, const cl_event* waits,
                  cl_event* event);

#endif  // XPURT_USM_ON_SVM_LAYER_H_

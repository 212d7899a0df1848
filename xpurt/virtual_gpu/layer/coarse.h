// The mode svm: a GPU without unified shared memory, whose shared virtual memory is
// coarse-grained, as drivers of several vendors have it.
//
// Note [Open pages]
// The driver's threads are threads of this process, so mprotect cannot distinguish the
// host from the device. The pages of an allocation are without access unless something
// has the right to use them: the host between map and unmap; a kernel that got the
// memory as an argument or in the list of clSetKernelExecInfo, a copy or a fill, from
// its enqueue until its event is complete. Anything else receives SIGSEGV: the host
// without a map, and a kernel that finds the pointer in memory without having it
// listed. While a permitted command is in flight, the others are not seen.
//
// The calls themselves are checked: a kernel, copy or fill that gets memory while it is
// mapped for the host is refused, and so are memory of malloc, of another context, and
// a range beyond its allocation.

#ifndef XPURT_VIRTUAL_GPU_COARSE_H_
#define XPURT_VIRTUAL_GPU_COARSE_H_

#include "layer.h"

void* coarse_alloc(cl_context context, cl_svm_mem_flags flags, size_t size,
                   cl_uint alignment);
void coarse_free(cl_context context, void* address);
void forget_coarse(cl_context context);
bool is_coarse(const void* address);

cl_int coarse_copy(cl_command_queue queue, cl_bool blocking, void* to, const void* from,
                   size_t size, cl_uint wait_count, const cl_event* waits,
                   cl_event* event);
cl_int coarse_fill(cl_command_queue queue, void* to, const void* pattern,
                   size_t pattern_size, size_t size, cl_uint wait_count,
                   const cl_event* waits, cl_event* event);
cl_int coarse_map(cl_command_queue queue, cl_bool blocking, void* address, size_t size,
                  cl_uint wait_count, const cl_event* waits, cl_event* event);
cl_int coarse_unmap(cl_command_queue queue, void* address, cl_uint wait_count,
                    const cl_event* waits, cl_event* event);
cl_int coarse_set_arg(cl_kernel kernel, cl_uint index, const void* address);
cl_int coarse_set_exec_info(cl_kernel kernel, cl_kernel_exec_info param, size_t size,
                            const void* value);

// The memory that one command uses.
typedef struct Use Use;

// Null if there is no memory.
Use* begin_use(cl_context context, const char* call);

typedef enum { MUST_BE_SVM, MAY_BE_OF_HOST } Wanted;

// Opens the pages for the command, or refuses it.
cl_int use_range(Use* use, const void* address, size_t size, Wanted wanted);

// Closes the pages after the command: when `event` is complete or, after an error, now.
// Returns `error`.
cl_int end_use(Use* use, cl_int error, cl_event event, bool releases_event);

#endif  // XPURT_VIRTUAL_GPU_COARSE_H_

// The live memory of the virtual GPU.
//
// Note [Shadow addresses]
// A kernel runs on CPU threads of this process, so the pages it works on must be
// accessible, and mprotect cannot tell the host from the device. Strict mode therefore
// gives out other addresses for device memory: a range of the same size, reserved
// without access (PROT_NONE). A kernel argument, a copy or a fill is translated to the
// real pages on its way down, so whatever goes through the API works, while a host that
// dereferences device memory dies of SIGSEGV, as it would with a discrete GPU.
// Addresses are never given out twice, so memory used after it was freed is found out
// too. Host and shared memory keep their real addresses.
//
// The price: only pointers that the API sees as pointers are translated. A device
// pointer that reaches a kernel inside of a struct, as an integer or through memory
// crashes the kernel. Kernels that need that can be tested in lenient mode.

#ifndef XPURT_VIRTUAL_GPU_MEMORY_H_
#define XPURT_VIRTUAL_GPU_MEMORY_H_

#include "layer.h"

typedef enum { DEVICE_MEMORY, SHARED_MEMORY, HOST_MEMORY } MemoryKind;

typedef struct {
  char* address;  // what the user sees
  char* real;     // what the driver sees; the same unless shadowed
  size_t size;
  MemoryKind kind;
  cl_context context;
} Allocation;

// Counts `bytes` against the memory of the device; false if there is not so much left.
bool take_device_memory(size_t bytes);
void give_back_device_memory(size_t bytes);

// Keeps an allocation in the table, under a shadow address if it needs one. Returns the
// address for the user, or null if there is no room.
void* remember(cl_context context, MemoryKind kind, void* real, size_t size,
               size_t alignment);

// Takes the allocation that starts at `address` out of the table.
bool forget(cl_context context, const void* address, Allocation* found);
void forget_context(cl_context context);

// The allocation that `address` lies in, its end included: an empty tensor may point
// there.
bool find_allocation(const void* address, Allocation* found);

// Who reaches for memory: a kernel or a fill reaches the memory of its own context
// only; a copy also reaches the memory of the host.
typedef enum { BY_KERNEL, BY_COPY } Access;

// Turns `address` into the driver's address for `size` bytes that `context` reaches
// for. In strict mode refuses, in the name of `call`, what a discrete GPU cannot reach;
// the code is CL_INVALID_MEM_OBJECT (CL_INVALID_VALUE would end the process inside of
// SYCL).
cl_int translate(cl_context context, Access access, const void* address, size_t size,
                 const char* call, void** real);

#endif  // XPURT_VIRTUAL_GPU_MEMORY_H_

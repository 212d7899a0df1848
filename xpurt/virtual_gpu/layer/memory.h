// The live memory of the virtual GPU.
//
// Note [Shadow addresses]
// A kernel runs on CPU threads of this process, so its pages must be accessible, and
// mprotect cannot distinguish the host from the device. Strict mode therefore gives
// device memory other addresses: a range of the same size, reserved without access
// (PROT_NONE). A kernel argument, a copy or a fill is translated to the real pages on
// its way to the driver, so everything that goes through the API works. A host that
// dereferences device memory receives SIGSEGV, as it would with a discrete GPU. An
// address is never given out twice, so use after free is detected, too. Host and shared
// memory keep their real addresses.
//
// The price: only pointers that are pointers in the API are translated. A device
// pointer that reaches a kernel inside of a struct, as an integer or through memory
// crashes the kernel. Kernels that need this can be tested in lenient mode.

#ifndef XPURT_VIRTUAL_GPU_MEMORY_H_
#define XPURT_VIRTUAL_GPU_MEMORY_H_

#include "address_ranges.h"
#include "layer.h"

typedef enum { DEVICE_MEMORY, SHARED_MEMORY, HOST_MEMORY } MemoryKind;

typedef struct {
  AddressRange range;  // the user's
  char* real;          // the driver's address; the same unless shadowed
  MemoryKind kind;
  cl_context context;
} Allocation;

// Counts `bytes` against the memory of the device; false if less is left.
bool take_device_memory(size_t bytes);
void give_back_device_memory(size_t bytes);

// Adds an allocation to the table, under a shadow address if it needs one. Returns the
// user's address, or null if there is no memory for the entry or no address.
void* remember(cl_context context, MemoryKind kind, void* real, size_t size,
               size_t alignment);

// Removes the allocation that starts at `address` from the table.
bool forget(cl_context context, const void* address, Allocation* found);
void forget_context(cl_context context);

// The allocation that contains `address`. Its end counts, too: an empty tensor may
// point there.
bool find_allocation(const void* address, Allocation* found);

// The kind of an access: a kernel or a fill can access the memory of its own context
// only; a copy can also access the memory of the host.
typedef enum { BY_KERNEL, BY_COPY } Access;

// Converts `address` to the driver's address, for an access of `context` to `size`
// bytes. In strict mode it refuses memory that a discrete GPU cannot access; `call` is
// named in the message. The code is CL_INVALID_MEM_OBJECT (CL_INVALID_VALUE would end
// the process inside of SYCL).
cl_int translate(cl_context context, Access access, const void* address, size_t size,
                 const char* call, void** real);

#endif  // XPURT_VIRTUAL_GPU_MEMORY_H_

// The live USM of served contexts.
//
// `memory_lock` guards the table, and is held while a kernel with a list of pointers is
// enqueued, so that no pointer of the list is freed in between. It is recursive: a
// driver may run callbacks of the program inside of an enqueue.

#ifndef XPURT_USM_ON_SVM_MEMORY_H_
#define XPURT_USM_ON_SVM_MEMORY_H_

#include "address_ranges.h"
#include "layer.h"

typedef struct {
  AddressRange range;
  cl_context context;
  cl_device_id device;
  cl_unified_shared_memory_type_intel kind;
  cl_mem_alloc_flags_intel flags;
  void* base;         // what clSVMAlloc or malloc returned; at or before the address
  bool is_svm;        // otherwise it is memory of malloc, see Note [Host memory]
  char* mirror;       // of memory of malloc, once a kernel needed it
  cl_event last_use;  // of the mirror
} Allocation;

void lock_memory(void);
void unlock_memory(void);

// Under the lock: the allocation of `context` around an address, or null.
Allocation* allocation_around(cl_context context, const void* address);

// Under the lock: the starts of all live SVM of a context, as many as `*count`. The
// array belongs to memory.c, and is valid until the lock is released. `*change` is
// another number after each change. Null if there is no memory.
const void* const* all_svm(cl_context context, size_t* count);
uint64_t memory_change(void);

// Under the lock: an address in SVM of a context at which nothing is; null if there is
// no memory.
void* empty_place(cl_context context);

// Under the lock: makes the mirror of an allocation; false if there is no memory.
bool make_mirror(Allocation* of);

#endif  // XPURT_USM_ON_SVM_MEMORY_H_

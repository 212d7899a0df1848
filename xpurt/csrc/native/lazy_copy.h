// Storages that share their bytes until one of them is written to.
#pragma once

#include <c10/core/Storage.h>

namespace xpurt {

// Note [Lazy copies]
// ~~~~~~~~~~~~~~~~~~
// A CPU storage and an xpu storage, or several of each, read the same memory. Taking a
// mutable pointer from one of them makes that storage private first: it gets memory of
// its own kind with the same bytes, or keeps the shared memory if that is of its kind
// and no other storage uses it. PyTorch's hook for this is the materializer of a
// storage. c10's own copy-on-write is not used, because all its storages are of one
// device:
// - the last remaining storage would take over memory of the other kind;
// - it would write to it, or free it, while queued work still reads it.
// Here, CPU memory is written again or freed only after a wait for the queues. Memory
// of xpu is ordered by events on the queues, and no thread waits for these.
//
// A kernel that writes takes a mutable pointer, which marks the write. Kernels on
// queues do so through Operands; native kernels, through their arguments. An alias of a
// shared storage has a materializer, too, which makes the original private. So an op
// that writes to an argument that its schema declares an input does no harm.
//
// A graph replays with fixed addresses: it may neither read nor write shared memory.

// A storage on `device` with the bytes of `source`, in O(1). `device` is the CPU, or an
// ordinal of one device with host memory; `source` is of the other kind. Raises
// MappingError if another thread changes the mapping meanwhile.
c10::Storage lazy_copy(c10::StorageImpl& source, c10::Device device);

// Copies host memory to host memory, by several threads if it is large.
void copy_bytes(void* to, const void* from, size_t bytes);

}  // namespace xpurt

// Storages that share their bytes until one of them is written to.
#pragma once

#include <c10/core/Storage.h>

namespace xpurt {

// Note [Lazy copies]
// ~~~~~~~~~~~~~~~~~~
// A CPU storage and an xpu storage, or several of each, read the same memory. Whoever
// asks one of them for a mutable pointer makes it private first: it gets memory of its
// own kind with the same bytes, or keeps the shared memory if that is of its kind and
// no other storage is left. PyTorch's hook for this is the materializer of a storage;
// c10's own copy-on-write is not used, because its storages are all of one device:
// - the last storage that is left would take over memory of the other kind;
// - it would write to it, or free it, while queued work still reads it.
// Here memory of the CPU is written to again, or freed, after a wait for the queues.
// Memory of xpu is ordered by events on the queues, and no thread waits for these.
//
// A kernel that writes asks for a mutable pointer: that shows the write. Kernels on
// queues ask through Operands, native ones through the tensors that they are given: an
// alias of a storage that is shared has a materializer, too, which makes the original
// private. So an op that writes to what its schema calls an input does no harm.
//
// A graph replays at addresses: it may neither read nor write what is shared.

// A storage on `device`, the CPU or an ordinal of one device with memory of the host,
// that has the bytes of `source`, a storage of the other kind. In O(1).
c10::Storage lazy_copy(c10::StorageImpl& source, c10::Device device);

// Host memory to host memory, by all threads if that is worth it.
void copy_bytes(void* to, const void* from, size_t bytes);

}  // namespace xpurt

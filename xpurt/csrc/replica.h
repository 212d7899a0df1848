// Copies of a storage on the devices of one ordinal. See Note [Home and replicas].
#pragma once

#include <ATen/core/TensorBase.h>

#include <cstddef>
#include <vector>

#include "stream.h"

namespace xpurt {

enum class Access { read, write, read_write };

// The address through which the device at `position` of the tensor's ordinal uses
// the tensor's first element, in work submitted to `stream` after this call. Copies
// the storage there first if that device has no valid copy; after a write it is the
// only valid one. Throws c10::OutOfMemoryError if the device has no room.
void* pointer_on(const at::TensorBase& tensor, size_t position, Access access,
                 Stream& stream);

// Makes the home copy valid for work that the current stream does next, or for the
// host once that stream was waited for; with a write, makes it the only valid one.
void bring_home(const c10::StorageImpl& storage, Access access);

// A raw pointer to the home copy leaves our sight: from now on the storage stays at
// home. Waits until home is valid.
void escape(const c10::StorageImpl& storage);

// False for storages that escaped, or whose memory is not of our allocator.
bool may_leave_home(const c10::StorageImpl& storage);

// Whether the device at `position` holds a valid copy.
bool is_valid_on(const c10::StorageImpl& storage, size_t position);

// Bytes that replicas occupy on the device at `position` of xpu:index.
size_t replica_bytes(c10::DeviceIndex index, size_t position);

// Called when the block at `base` is given back.
void forget_replicas(void* base) noexcept;

// Gives all memory of replicas back to the drivers; no tensor may be alive.
void release_replicas();

}  // namespace xpurt

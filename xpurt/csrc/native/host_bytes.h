// The handling of xpu storages that HostCall and HostViews have in common: see
// Note [Host tensors] and Note [Host views].
#pragma once

#include <c10/core/StorageImpl.h>

#include "memory/allocator.h"
#include "memory/cpu_allocator.h"
#include "memory/replica/host_writes.h"
#include "memory/replica/replica.h"

namespace xpurt {

// Called before the host uses the bytes of a storage: gives a copy-on-write storage
// that is written bytes of its own, and brings the bytes home. Returns whether the
// storage got new bytes: host forms that were made before still have the old ones.
// `tensor`: the operand, whose bytes alone are written; nullptr: any bytes.
inline bool ready_for_host(c10::StorageImpl& original, const c10::TensorImpl* tensor,
                           bool written, HostWrites* writes, Uses* pending) {
  const bool copied = written && original.has_materializer();
  if (C10_UNLIKELY(copied)) original.mutable_data_ptr();
  if (written) tensor != nullptr ? writes->begin(*tensor) : writes->begin(original);
  bring_home(original, written ? Access::read_write : Access::read, pending);
  return copied;
}

// Labels memory that the host allocated for a result as the device's, if it is device
// memory. Returns whether it is.
inline bool label_as(c10::StorageImpl& memory, c10::Device device) {
  c10::DataPtr& data = memory._mutable_data_ptr_no_checks();
  if (!is_device_memory(data)) return false;
  data.unsafe_set_device(device);
  memory.set_allocator(&device_allocator());
  return true;
}

}  // namespace xpurt

// A device type whose tensors are those of another device, under its name.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/DispatchKey.h>
#include <c10/core/Storage.h>

#include "native/alias.h"

namespace xpurt {

class PrototypeMemory;
class SyclMemory;

// Note [Prototype devices]
// ~~~~~~~~~~~~~~~~~~~~~~~~
// A tensor of a prototype device has the dispatch keys of its own device type, and
// memory of the *device behind* it: the CPU, or xpu. An op that the vendor has no
// kernel for yet runs there. Its arguments are replaced by tensors of that device, the
// op is called again, and its results get the keys of the prototype.
//
// A storage of the prototype owns a storage of the device behind it, over the same
// bytes, from its first use to its end: kernels of xpu know a storage by its address.
// It is in the context of the prototype's DataPtr. If a kernel gives that storage other
// memory, the prototype's storage gets it after the call.
//
// A vendor's own kernel may make storages, too. For such a one, a storage of the CPU is
// made for each call. The same holds for memory that the host can't read: see Note
// [Prototypes on SYCL devices].
class PrototypeDevice {
 public:
  // `behind`: CPU or XPU. With XPU, xpu:i is behind the device i. `sycl`: the memory,
  // if it is neither the CPU's nor xpu's; kernels of the CPU compute then.
  PrototypeDevice(c10::DeviceType type, c10::DeviceType behind, c10::DeviceIndex count,
                  const SyclMemory* sycl);

  c10::DeviceType type() const { return type_; }
  c10::DeviceType type_behind() const { return behind_; }
  c10::DeviceIndex count() const { return count_; }
  // Whether kernels of the CPU compute.
  bool is_on_host() const { return behind_ == c10::DeviceType::CPU; }
  const SyclMemory* sycl() const { return sycl_; }
  // The counts of what its tensors have.
  PrototypeMemory& memory() const { return memory_; }
  // Whether kernels of the CPU get copies: they can't read the memory.
  bool copies() const;

  // Throws for an index that is not there.
  c10::Device own(c10::DeviceIndex index) const;
  c10::Device behind(c10::Device own) const;

  KeyExchange to_behind() const { return keys_; }
  // The runtime key of a layout: Dense, Sparse, SparseCsr, Quantized, NestedTensor.
  c10::DispatchKey own_key(c10::DispatchKey layout) const;
  c10::DispatchKey key_behind(c10::DispatchKey layout) const;

  // The current device of this thread.
  c10::DeviceIndex current() const;
  c10::DeviceIndex exchange(c10::DeviceIndex index) const;

 private:
  const c10::DeviceType type_, behind_;
  const c10::DeviceIndex count_;
  const SyclMemory* const sycl_;
  PrototypeMemory& memory_;
  const KeyExchange keys_;
};

// The storage of the device behind it that a prototype's storage owns. If it owns none,
// a new one over its bytes, or of a copy of them. Waits for the current stream if
// kernels of the CPU compute.
c10::Storage storage_behind(const PrototypeDevice& device, const c10::Storage& own);

// A storage of `own` that owns `behind`.
c10::Storage own_storage(c10::Storage behind, c10::Device own);

// Gives `own` the memory and the size that `behind` has now.
void follow(c10::StorageImpl& own, const c10::Storage& behind);

// The memory of a storage of `own` that owns `behind`.
c10::DataPtr own_data(c10::Storage behind, c10::Device own);

// Defines the guard, the allocator, the hooks, and the kernels of all ops. Throws if
// the type has a device already.
const PrototypeDevice& make_prototype_device(c10::DeviceType type,
                                             c10::DeviceType behind,
                                             c10::DeviceIndex count,
                                             const SyclMemory* sycl);

// nullptr if the type has no prototype.
const PrototypeDevice* prototype_device(c10::DeviceType type);

}  // namespace xpurt

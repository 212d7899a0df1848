// The devices behind those of the type "lazy".
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <torch/csrc/lazy/backend/backend_device.h>

#include <vector>

namespace xpurt {

// Note [Types behind lazy devices]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// A device of PyTorch's type "lazy" stands for a device of another type, by its
// ordinal: xpu, the CPU, or a type that a prototype device has. One type at a time is
// behind all of them, as torch::lazy has it: its BackendDevice is that type and the
// ordinal. A lazy tensor keeps the BackendDevice that it was made for, but its device
// is `lazy:0` under any type, and a graph has tensors of one type. So the type changes
// only while no lazy tensor is alive, as a mapping does. Moving those that are would
// leave views, gradients and optimizers of two devices under one name.
//
// Graphs of two devices are never one to the cache, see Note [Hashes of lazy graphs].

struct RealType final : torch::lazy::BackendDeviceType {
  explicit RealType(c10::DeviceType type)
      : BackendDeviceType(static_cast<int8_t>(type)) {}
  std::string toString() const override {
    return c10::DeviceTypeName(static_cast<c10::DeviceType>(type));
  }
};

// XPU at first.
c10::DeviceType lazy_device_type() noexcept;

// The types that may be behind lazy devices in this process.
std::vector<c10::DeviceType> real_device_types();

// Throws if the type is none of these, or if lazy tensors are alive.
void set_lazy_device_type(c10::DeviceType type);

// From a device of torch::lazy to one of PyTorch, and back. There is one CPU, which has
// no index. Both throw if there is no such device.
c10::Device real_device(const torch::lazy::BackendDevice& device);
torch::lazy::BackendDevice backend_device(c10::Device real);

// The device behind one of the type "lazy", which need not have an index.
c10::Device real_device(c10::Device lazy);

// Of all types.
std::vector<torch::lazy::BackendDevice> backend_devices();

// Of the type in use: the ordinal that is current on this thread.
c10::DeviceIndex current_ordinal();
void set_current_ordinal(c10::DeviceIndex ordinal);

// Waits for what this thread has submitted to the device.
void synchronize_current_stream(c10::Device real);

// `tensor` on the device; counted if it comes from the host.
at::Tensor moved_to(const at::Tensor& tensor, c10::Device real);

}  // namespace xpurt

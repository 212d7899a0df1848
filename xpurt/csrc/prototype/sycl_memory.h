// The memory of a prototype on devices of SYCL, and the queues behind its streams.
#pragma once

#include <c10/core/Allocator.h>
#include <c10/core/Stream.h>

#include <array>
#include <atomic>
#include <memory>
#include <sycl/sycl.hpp>
#include <vector>

#include "device/memory_amounts.h"

namespace xpurt {

// Note [Prototypes on SYCL devices]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// The tensors have unified shared memory of a SYCL device, and PyTorch's CPU kernels
// compute. If the host can read that memory, they compute in it. Else they get copies,
// and what they wrote is copied back: the spans of the written tensors alone, since
// another thread may write to the same storage.
//
// A stream is an in-order queue, for the kernels of a vendor. Before an op runs on the
// host, the current stream's work ends, and the op has ended when it returns. So an op
// has its place in the order of its stream. Memory is given back to the driver when all
// queues of its device are empty: no use needs to be recorded.
class SyclMemory {
 public:
  // Device i has memory of devices[i]. Throws ValueError for a device that has none.
  explicit SyclMemory(const std::vector<sycl::device>& devices);
  SyclMemory(const SyclMemory&) = delete;
  SyclMemory& operator=(const SyclMemory&) = delete;

  // Whether the host can read the memory of all devices.
  bool is_host_accessible() const { return is_host_accessible_; }

  // `label`: the device of the pointer.
  c10::DataPtr allocate(c10::DeviceIndex index, size_t bytes, c10::Device label) const;
  // Whether `data` is from allocate().
  static bool is_owner_of(const c10::DataPtr& data) noexcept;
  // Memory with the label "cpu", for storages that kernels of the host resize.
  c10::Allocator& host_allocator(c10::DeviceIndex index) const;

  // `held`: see memory_amounts().
  MemoryAmounts amounts(c10::DeviceIndex index,
                        const std::function<uint64_t()>& held) const;

  // In the order of the current stream; returns when it is done.
  void copy(c10::DeviceIndex index, void* to, const void* from, size_t bytes) const;
  // Returns when the current stream's work is done.
  void wait(c10::DeviceIndex index) const;
  void synchronize(c10::DeviceIndex index) const;

  // Stream 0 is the default one. The others come from a pool, in turn.
  static constexpr c10::StreamId kStreams = 33;
  c10::StreamId new_stream(c10::DeviceIndex index) const;
  c10::StreamId current_stream(c10::DeviceIndex index) const;
  c10::StreamId exchange_stream(c10::DeviceIndex index, c10::StreamId id) const;
  // The process keeps it. Throws ValueError if there is no such stream.
  sycl::queue& queue(c10::DeviceIndex index, c10::StreamId id) const;
  // An event behind all work of the stream, with a time.
  sycl::event mark(c10::DeviceIndex index, c10::StreamId id) const;

 private:
  struct Device;

  Device& device(c10::DeviceIndex index) const { return *devices_[index]; }

  std::vector<std::unique_ptr<Device>> devices_;
  bool is_host_accessible_ = true;
};

// Any thread may submit to a queue at any time, so none is queried: see Note [Queries
// of a queue]. The event of a barrier is, or that of the last work.

// These return when the work is done. They release the GIL; Ctrl-C ends the call.
void wait_for_event(const sycl::event& event);
void wait_for_queue(sycl::queue& queue);
// Whether the queue's work is done.
bool is_done(sycl::queue& queue);

}  // namespace xpurt

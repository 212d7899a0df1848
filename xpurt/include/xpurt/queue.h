// For C++ extensions: the SYCL queue to submit work of an xpu device to.
//
//   sycl::queue& queue = xpurt::current_queue(tensor.device().index());
//   queue.memcpy(out.data_ptr(), in.data_ptr(), in.nbytes());  // not waited for
//
// Needs no library of xpurt. Build with xpurt.cpp_extension, which sets the paths.
#pragma once

#include <c10/core/Stream.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <sycl/sycl.hpp>

namespace xpurt {

// The queue of a stream on xpu: in order, valid until the process ends. Under AUTO it
// is the queue of the device that holds the bytes at data_ptr().
inline sycl::queue& queue_of(c10::Stream stream) {
  const c10::impl::VirtualGuardImpl guard(c10::DeviceType::XPU);
  return *static_cast<sycl::queue*>(guard.getStreamNativeHandle(stream));
}

// The queue of this thread's current stream on xpu:index, by default of the current
// device. It changes with the stream and the mapping, so get it in each call.
inline sycl::queue& current_queue(c10::DeviceIndex index = -1) {
  const c10::impl::VirtualGuardImpl guard(c10::DeviceType::XPU);
  if (index < 0) index = guard.getDevice().index();
  return queue_of(guard.getStream(c10::Device(c10::DeviceType::XPU, index)));
}

}  // namespace xpurt

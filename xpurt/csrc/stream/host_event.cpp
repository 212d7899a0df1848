#include "stream/host_event.h"

#include <CL/cl.h>

#include "device/device.h"

namespace xpurt {

std::shared_ptr<HostEvent> HostEvent::make(const sycl::context& context) {
  if (context.get_backend() != kOpenCL) return nullptr;
  cl_int error = CL_SUCCESS;
  cl_event made = clCreateUserEvent(sycl::get_native<kOpenCL>(context), &error);
  if (error != CL_SUCCESS) return nullptr;
  return std::shared_ptr<HostEvent>(new HostEvent(context, made));
}

HostEvent::HostEvent(const sycl::context& context, void* user_event)
    : event_(sycl::make_event<kOpenCL>(
          std::vector<cl_event>{static_cast<cl_event>(user_event)}, context)),
      user_event_(user_event) {}

void HostEvent::complete() noexcept {
  auto* const ended = static_cast<cl_event>(user_event_.exchange(nullptr));
  if (ended == nullptr) return;
  clSetUserEventStatus(ended, CL_COMPLETE);
  clReleaseEvent(ended);
}

}  // namespace xpurt

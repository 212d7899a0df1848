// A group's parts that are no collectives of tensors: options, barriers, splits.
#include <ATen/ops/empty.h>

#include "distributed/backend.h"
#include "distributed/collective_work.h"
#include "stream/stream.h"

namespace xpurt {

using c10d::OpType;

XpuBackend::XpuBackend(BackendPointer inner, c10::intrusive_ptr<Options> options,
                       bool is_shared)
    : Backend(inner->getRank(), inner->getSize()),
      inner_(std::move(inner)),
      options_(std::move(options)),
      is_shared_(is_shared) {}

void XpuBackend::setTimeout(std::chrono::milliseconds timeout) {
  options_->timeout = timeout;
  inner_->setTimeout(timeout);
}

void XpuBackend::setGroupUid(const std::string& uid) {
  Backend::setGroupUid(uid);
  if (!is_shared_) inner_->setGroupUid(uid);
}

BackendPointer XpuBackend::split(const c10::intrusive_ptr<c10d::Store>& store,
                                 const std::vector<int>& ranks,
                                 const c10::intrusive_ptr<Options>& options) {
  const auto of_inner = inner_->getBackendOptions();
  of_inner->timeout = options->timeout;
  of_inner->group_name = options->group_name;
  of_inner->global_ranks_in_group = options->global_ranks_in_group;
  BackendPointer part = inner_->split(store, ranks, of_inner);
  if (part == nullptr) return nullptr;
  return c10::make_intrusive<XpuBackend>(std::move(part), options, false);
}

BackendPointer XpuBackend::merge(const c10::intrusive_ptr<c10d::Store>& store,
                                 const c10::intrusive_ptr<Options>& options,
                                 const int& rank, const int& size) {
  const auto of_inner = inner_->getBackendOptions();
  of_inner->timeout = options->timeout;
  of_inner->group_name = options->group_name;
  return c10::make_intrusive<XpuBackend>(inner_->merge(store, of_inner, rank, size),
                                         options, false);
}

// Every rank's work so far, on its current stream, is done when a barrier is.
WorkPointer XpuBackend::barrier(const c10d::BarrierOptions& options) {
  c10d::BarrierOptions of_inner = options;
  of_inner.device_ids.clear();
  of_inner.device = std::nullopt;
  const c10::Device device(c10::DeviceType::XPU, current_device());
  // It stands for the stream: its host form is ready when the work before it is done.
  const at::Tensor mark = at::empty({1}, at::device(device).dtype(at::kByte));
  return run({OpType::BARRIER, {mark}, {}, [=](Backend& inner, const HostForms&) {
                return inner.barrier(of_inner);
              }});
}

void XpuBackend::monitoredBarrier(const c10d::BarrierOptions& options, bool wait_all) {
  current_stream().wait();
  inner_->monitoredBarrier(options, wait_all);
}

c10d::ErrorType XpuBackend::getError() {
  return c10d::ErrorType::SUCCESS;
}

BackendPointer backend_for_xpu(c10d::ProcessGroup& group) {
  constexpr auto kXpu = c10::DeviceType::XPU;
  constexpr auto kCpu = c10::DeviceType::CPU;
  const bool has_own = group.hasBackendForDeviceType(kXpu);
  if (has_own) {
    BackendPointer own = group.getBackend(kXpu);
    // A group may have been made with "cpu:gloo,xpu:gloo".
    if (own->getBackendName() != "gloo") return own;
  } else if (!group.hasBackendForDeviceType(kCpu) ||
             group.getBackend(kCpu)->getBackendName() != "gloo") {
    return group.getBackend(kXpu);  // throws, and names the group's devices
  }
  BackendPointer gloo = group.getBackend(has_own ? kXpu : kCpu);
  auto made = c10::make_intrusive<XpuBackend>(
      gloo, c10::make_intrusive<XpuBackendOptions>(gloo->getBackendOptions()->timeout),
      /*is_shared=*/true);
  made->setGroupUid(gloo->getGroupUid());
  group.setBackend(kXpu, c10d::ProcessGroup::BackendType::XCCL,
                   c10::static_intrusive_pointer_cast<c10d::Backend>(made));
  return made;
}

}  // namespace xpurt

// A group's parts that are no collectives of tensors: options, barriers, splits.
#include <ATen/ops/empty.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include <algorithm>

#include "distributed/backend.h"
#include "distributed/collective_work.h"
#include "stream/stream.h"

namespace xpurt {

using c10d::OpType;

namespace {

InnerBackend& inner_backend() {
  static auto* const leaked = new InnerBackend;
  return *leaked;
}

// Then no stream has work that the barrier waits for.
bool is_for_cpu(const c10d::BarrierOptions& options) {
  return options.device && options.device->is_cpu();
}

}  // namespace

void set_inner_backend(InnerBackend make) {
  inner_backend() = std::move(make);
}

BackendPointer make_inner_backend(const c10::intrusive_ptr<c10d::Store>& store,
                                  int rank, int size,
                                  std::chrono::milliseconds timeout) {
  return inner_backend()(store, rank, size, timeout);
}

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

// Gloo's own split() gives the parent's options to the part, and changes them. And the
// group may have gloo for CPU tensors, too, which is split with the same store: so this
// one has keys of its own.
BackendPointer XpuBackend::split(const c10::intrusive_ptr<c10d::Store>& store,
                                 const std::vector<int>& ranks,
                                 const c10::intrusive_ptr<Options>& options) {
  const auto own = std::ranges::find(ranks, getRank());
  if (own == ranks.end()) return nullptr;
  const auto rank = static_cast<int>(own - ranks.begin());
  return merge(store, options, rank, static_cast<int>(ranks.size()));
}

BackendPointer XpuBackend::merge(const c10::intrusive_ptr<c10d::Store>& store,
                                 const c10::intrusive_ptr<Options>& options,
                                 const int& rank, const int& size) {
  const auto keys = c10::make_intrusive<c10d::PrefixStore>(
      c10::str(options->group_name, "/xccl"), store->clone());
  return c10::make_intrusive<XpuBackend>(
      make_inner_backend(keys, rank, size, options->timeout), options, false);
}

// Every rank's work so far, on its current stream, is done when a barrier is.
WorkPointer XpuBackend::barrier(const c10d::BarrierOptions& options) {
  c10d::BarrierOptions of_inner = options;
  of_inner.device_ids.clear();
  of_inner.device = std::nullopt;
  const auto start = [=](Backend& inner, const HostForms&) {
    return inner.barrier(of_inner);
  };
  if (is_for_cpu(options)) return run({OpType::BARRIER, {}, {}, start});
  const c10::Device device(c10::DeviceType::XPU, current_device());
  // It stands for the stream: its host form is ready when the work before it is done.
  const at::Tensor mark = at::empty({1}, at::device(device).dtype(at::kByte));
  return run({OpType::BARRIER, {mark}, {}, start});
}

void XpuBackend::monitoredBarrier(const c10d::BarrierOptions& options, bool wait_all) {
  if (!is_for_cpu(options)) current_stream().wait();
  inner_->monitoredBarrier(options, wait_all);
}

c10d::ErrorType XpuBackend::getError() {
  return c10d::ErrorType::SUCCESS;
}

BackendPointer backend_around(const BackendPointer& gloo) {
  auto made = c10::make_intrusive<XpuBackend>(
      gloo, c10::make_intrusive<XpuBackendOptions>(gloo->getBackendOptions()->timeout),
      /*is_shared=*/true);
  made->setGroupUid(gloo->getGroupUid());
  return made;
}

BackendPointer backend_or_made(
    c10d::ProcessGroup& group, c10::DeviceType type,
    c10d::ProcessGroup::BackendType kind,
    const std::function<BackendPointer(const BackendPointer& gloo)>& make) {
  constexpr auto kCpu = c10::DeviceType::CPU;
  const bool has_own = group.hasBackendForDeviceType(type);
  if (has_own) {
    BackendPointer own = group.getBackend(type);
    // A group may have been made with "cpu:gloo,xpu:gloo".
    if (own->getBackendName() != "gloo") return own;
  } else if (!group.hasBackendForDeviceType(kCpu) ||
             group.getBackend(kCpu)->getBackendName() != "gloo") {
    return group.getBackend(type);  // throws, and names the group's devices
  }
  BackendPointer made = make(group.getBackend(has_own ? type : kCpu));
  group.setBackend(type, kind, made);
  return made;
}

BackendPointer backend_for_xpu(c10d::ProcessGroup& group) {
  return backend_or_made(group, c10::DeviceType::XPU,
                         c10d::ProcessGroup::BackendType::XCCL, &backend_around);
}

}  // namespace xpurt

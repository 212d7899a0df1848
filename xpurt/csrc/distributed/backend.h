// c10d's backend for xpu tensors, around another backend.
#pragma once

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "distributed/collective.h"
#include "distributed/launch_queue.h"
#include "host/api.h"
#include "host/mutex.h"

namespace xpurt {

using InnerBackend =
    std::function<BackendPointer(const c10::intrusive_ptr<c10d::Store>& store, int rank,
                                 int size, std::chrono::milliseconds timeout)>;
// The function that makes backends for CPU tensors.
void set_inner_backend(InnerBackend make);
BackendPointer make_inner_backend(const c10::intrusive_ptr<c10d::Store>& store,
                                  int rank, int size,
                                  std::chrono::milliseconds timeout);

// The options of a group; PyTorch's ProcessGroupXCCL has the same fields.
struct XpuBackendOptions : c10d::Backend::Options {
  explicit XpuBackendOptions(std::chrono::milliseconds timeout = kBackendDefaultTimeout)
      : Options("xccl", timeout) {}

  bool is_high_priority_stream = false;
};

class XpuBackend final : public c10d::Backend {
 public:
  // `inner` works on CPU tensors. `is_shared`: other code calls it, too, for CPU
  // tensors. Then no launch is put off: the order of all calls must be the same on all
  // ranks.
  XpuBackend(BackendPointer inner, c10::intrusive_ptr<Options> options, bool is_shared);

  const BackendPointer& inner() const { return inner_; }

  const std::string getBackendName() const override { return "xccl"; }
  c10::intrusive_ptr<Options> getBackendOptions() override { return options_; }
  bool supportsSplitting() const override { return true; }
  bool supportsCoalescing() const override { return true; }
  void setTimeout(std::chrono::milliseconds timeout) override;
  void setSequenceNumberForGroup() override { inner_->setSequenceNumberForGroup(); }
  uint64_t getSequenceNumberForGroup() override {
    return inner_->getSequenceNumberForGroup();
  }
  void setGroupUid(const std::string& uid) override;
  void enableCollectivesTiming() override { inner_->enableCollectivesTiming(); }
  BackendPointer split(const c10::intrusive_ptr<c10d::Store>& store,
                       const std::vector<int>& ranks,
                       const c10::intrusive_ptr<Options>& options) override;
  BackendPointer merge(const c10::intrusive_ptr<c10d::Store>& store,
                       const c10::intrusive_ptr<Options>& options, const int& rank,
                       const int& size) override;
  void abort() override { inner_->abort(); }
  void shutdown() override { inner_->shutdown(); }
  c10d::ErrorType getError() override;

  WorkPointer broadcast(Tensors& tensors,
                        const c10d::BroadcastOptions& options) override;
  WorkPointer allreduce(Tensors& tensors,
                        const c10d::AllreduceOptions& options) override;
  WorkPointer allreduce_coalesced(
      Tensors& tensors, const c10d::AllreduceCoalescedOptions& options) override;
  WorkPointer reduce(Tensors& tensors, const c10d::ReduceOptions& options) override;
  WorkPointer allgather(TensorLists& outputs, Tensors& inputs,
                        const c10d::AllgatherOptions& options) override;
  WorkPointer _allgather_base(at::Tensor& output, at::Tensor& input,
                              const c10d::AllgatherOptions& options) override;
  WorkPointer allgather_coalesced(TensorLists& outputs, Tensors& inputs,
                                  const c10d::AllgatherOptions& options) override;
  WorkPointer allgather_into_tensor_coalesced(
      Tensors& outputs, Tensors& inputs,
      const c10d::AllgatherOptions& options) override;
  WorkPointer gather(TensorLists& outputs, Tensors& inputs,
                     const c10d::GatherOptions& options) override;
  WorkPointer scatter(Tensors& outputs, TensorLists& inputs,
                      const c10d::ScatterOptions& options) override;
  WorkPointer reduce_scatter(Tensors& outputs, TensorLists& inputs,
                             const c10d::ReduceScatterOptions& options) override;
  WorkPointer _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                   const c10d::ReduceScatterOptions& options) override;
  WorkPointer reduce_scatter_tensor_coalesced(
      Tensors& outputs, Tensors& inputs,
      const c10d::ReduceScatterOptions& options) override;
  WorkPointer alltoall_base(at::Tensor& output, at::Tensor& input,
                            std::vector<int64_t>& output_splits,
                            std::vector<int64_t>& input_splits,
                            const c10d::AllToAllOptions& options) override;
  WorkPointer alltoall(Tensors& outputs, Tensors& inputs,
                       const c10d::AllToAllOptions& options) override;
  WorkPointer send(Tensors& tensors, int to, int tag) override;
  WorkPointer recv(Tensors& tensors, int from, int tag) override;
  WorkPointer recvAnysource(Tensors& tensors, int tag) override;
  WorkPointer barrier(const c10d::BarrierOptions& options) override;
  void monitoredBarrier(const c10d::BarrierOptions& options, bool wait_all) override;

  void startCoalescing() override;
  WorkPointer endCoalescing() override;

 private:
  // run.cpp
  WorkPointer run(Collective collective);
  WorkPointer run_one(Collective collective);
  // several.cpp: several collectives, and their works as one.
  WorkPointer run_pairs(
      c10d::OpType type, Tensors& outputs, Tensors& inputs,
      const std::function<WorkPointer(at::Tensor&, at::Tensor&)>& each);
  WorkPointer run_chunks(c10d::OpType type, const Tensors& whole, const Tensors& chunks,
                         const std::function<WorkPointer(Tensors&)>& each);
  std::string title_of(const Collective& collective) const;

  const BackendPointer inner_;
  const c10::intrusive_ptr<Options> options_;
  const bool is_shared_;
  LaunchQueue launches_;
  Mutex mutex_{Rank::coalescing};
  bool is_coalescing_ = false;
  std::vector<WorkPointer> coalesced_;
};

// The parts of a large tensor in memory that the host does not read; none of any other.
// See Note [Chunks].
Tensors chunks_of(const Tensors& tensors);

// The backend of a group for xpu tensors. A group that has gloo alone gets one around
// it at its first use with them.
XPURT_API BackendPointer backend_for_xpu(c10d::ProcessGroup& group);

// Such a backend. It takes CPU tensors, too, and has what gloo lacks for them.
XPURT_API BackendPointer backend_around(const BackendPointer& gloo);

// The backend of a group for tensors of `type`. If it has none but gloo, it gets what
// `make` returns, under the name `kind`. Throws if the group has neither.
XPURT_API BackendPointer
backend_or_made(c10d::ProcessGroup& group, c10::DeviceType type,
                c10d::ProcessGroup::BackendType kind,
                const std::function<BackendPointer(const BackendPointer& gloo)>& make);

}  // namespace xpurt

// c10d's backend for tensors of prototypes.
#pragma once

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <functional>

#include "distributed/collective.h"
#include "host/mutex.h"
#include "prototype/renamed_work.h"

namespace xpurt {

// Note [Collectives of prototypes]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// A collective gets the tensors of the device behind, and the backend for xpu runs it:
// it takes CPU tensors, too. Where the host can't read the memory, kernels and gloo get
// copies, and results are copied back when the collective has ended: in a thread of
// gloo, or in wait().
//
// PyTorch gives a group one backend of the kind "custom" for all device types, so this
// one takes tensors of any prototype.
class PrototypeBackend final : public c10d::Backend {
 public:
  explicit PrototypeBackend(BackendPointer behind)
      : Backend(behind->getRank(), behind->getSize()), behind_(std::move(behind)) {}

  const BackendPointer& behind() const { return behind_; }

  static constexpr const char* kName = "prototype";
  const std::string getBackendName() const override { return kName; }
  c10::intrusive_ptr<Options> getBackendOptions() override {
    return behind_->getBackendOptions();
  }
  bool supportsSplitting() const override { return true; }
  bool supportsCoalescing() const override { return true; }
  void setTimeout(std::chrono::milliseconds timeout) override {
    behind_->setTimeout(timeout);
  }
  void setSequenceNumberForGroup() override { behind_->setSequenceNumberForGroup(); }
  uint64_t getSequenceNumberForGroup() override {
    return behind_->getSequenceNumberForGroup();
  }
  void setGroupUid(const std::string& uid) override;
  void enableCollectivesTiming() override { behind_->enableCollectivesTiming(); }
  BackendPointer split(const c10::intrusive_ptr<c10d::Store>& store,
                       const std::vector<int>& ranks,
                       const c10::intrusive_ptr<Options>& options) override;
  BackendPointer merge(const c10::intrusive_ptr<c10d::Store>& store,
                       const c10::intrusive_ptr<Options>& options, const int& rank,
                       const int& size) override;
  void abort() override { behind_->abort(); }
  void shutdown() override { behind_->shutdown(); }
  c10d::ErrorType getError() override { return behind_->getError(); }

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
  // The tensors of the device behind for those of one collective.
  class Behind;

  // `read` and `written`: the arguments, of which the first says which prototype.
  WorkPointer run(c10d::OpType type, const Tensors& read, const Tensors& written,
                  const std::function<WorkPointer(const Behind& behind)>& start);

  const BackendPointer behind_;
  Mutex mutex_{Rank::coalescing};
  bool is_coalescing_ = false;
  std::vector<c10::intrusive_ptr<RenamedWork>> coalesced_;
};

}  // namespace xpurt

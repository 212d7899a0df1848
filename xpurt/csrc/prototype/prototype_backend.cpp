#include "prototype/prototype_backend.h"

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include <algorithm>

#include "prototype/sycl_memory.h"

namespace xpurt {

using c10d::OpType;

namespace {

Tensors flat(const TensorLists& lists) {
  Tensors all;
  for (const Tensors& each : lists) all.insert(all.end(), each.begin(), each.end());
  return all;
}

// A barrier waits for the work on the current streams of all prototypes. Returns its
// options for the backend behind.
c10d::BarrierOptions behind_all_streams(c10d::BarrierOptions options) {
  options.device_ids.clear();
  options.device = c10::Device(c10::kCPU);
  for (int i = 0; i < c10::COMPILE_TIME_MAX_DEVICE_TYPES; ++i) {
    const PrototypeDevice* each = prototype_device(static_cast<c10::DeviceType>(i));
    if (each == nullptr) continue;
    if (each->sycl() != nullptr) each->sycl()->wait(each->current());
    if (!each->is_on_host()) options.device = std::nullopt;
  }
  return options;
}

}  // namespace

class PrototypeBackend::Behind {
 public:
  // `first`: a tensor of the prototype.
  explicit Behind(const at::Tensor& first)
      : device_(prototype_device(first.device().type())) {
    TORCH_CHECK_VALUE(device_ != nullptr,
                      "the backend \"prototype\" takes tensors of a prototype device; "
                      "found one on ",
                      first.device(),
                      ". Give the group a backend for it, as \"cpu:gloo\".");
    call_ = std::make_shared<RenamedCall>(*device_, first.device());
  }

  const PrototypeDevice& device() const { return *device_; }
  const std::shared_ptr<RenamedCall>& call() const { return call_; }
  void mark_as_written(const Tensors& tensors) const {
    for (const at::Tensor& each : tensors) call_->to_behind(each, /*written=*/true);
  }

  at::Tensor operator()(const at::Tensor& tensor) const {
    return call_->to_behind(tensor, /*written=*/false).toTensor();
  }
  Tensors operator()(const Tensors& tensors) const {
    Tensors made;
    for (const at::Tensor& each : tensors) made.push_back((*this)(each));
    return made;
  }
  TensorLists operator()(const TensorLists& lists) const {
    TensorLists made;
    for (const Tensors& each : lists) made.push_back((*this)(each));
    return made;
  }

 private:
  const PrototypeDevice* device_;
  std::shared_ptr<RenamedCall> call_;
};

WorkPointer PrototypeBackend::run(
    OpType type, const Tensors& read, const Tensors& written,
    const std::function<WorkPointer(const Behind& behind)>& start) {
  const Tensors& some = written.empty() ? read : written;
  TORCH_CHECK_VALUE(!some.empty(), "a collective needs a tensor; found none");
  const Behind behind(some.front());
  behind.mark_as_written(written);
  WorkPointer inner = start(behind);
  // Gloo gives a sparse tensor other indices.
  const bool gets_parts = std::ranges::any_of(
      written, [](const at::Tensor& each) { return !is_plain(each); });
  std::vector<std::shared_ptr<RenamedCall>> copied;
  if (behind.device().copies() || gets_parts) copied.push_back(behind.call());
  auto work =
      c10::make_intrusive<RenamedWork>(type, std::move(inner), std::move(copied), some);
  const std::lock_guard<Mutex> lock(mutex_);
  if (is_coalescing_) coalesced_.push_back(work);
  return work;
}

void PrototypeBackend::setGroupUid(const std::string& uid) {
  Backend::setGroupUid(uid);
  behind_->setGroupUid(uid);
}

// The group may have a backend for xpu, which is split with the same store.
BackendPointer PrototypeBackend::split(const c10::intrusive_ptr<c10d::Store>& store,
                                       const std::vector<int>& ranks,
                                       const c10::intrusive_ptr<Options>& options) {
  const auto keys = c10::make_intrusive<c10d::PrefixStore>(kName, store->clone());
  BackendPointer part = behind_->split(keys, ranks, options);
  if (!part) return nullptr;
  return c10::make_intrusive<PrototypeBackend>(std::move(part));
}

BackendPointer PrototypeBackend::merge(const c10::intrusive_ptr<c10d::Store>& store,
                                       const c10::intrusive_ptr<Options>& options,
                                       const int& rank, const int& size) {
  const auto keys = c10::make_intrusive<c10d::PrefixStore>(kName, store->clone());
  return c10::make_intrusive<PrototypeBackend>(
      behind_->merge(keys, options, rank, size));
}

WorkPointer PrototypeBackend::broadcast(Tensors& tensors,
                                        const c10d::BroadcastOptions& options) {
  return run(OpType::BROADCAST, tensors, tensors, [&](const Behind& behind) {
    Tensors all = behind(tensors);
    return behind_->broadcast(all, options);
  });
}

WorkPointer PrototypeBackend::allreduce(Tensors& tensors,
                                        const c10d::AllreduceOptions& options) {
  return run(OpType::ALLREDUCE, tensors, tensors, [&](const Behind& behind) {
    Tensors all = behind(tensors);
    return behind_->allreduce(all, options);
  });
}

WorkPointer PrototypeBackend::allreduce_coalesced(
    Tensors& tensors, const c10d::AllreduceCoalescedOptions& options) {
  return run(OpType::ALLREDUCE_COALESCED, tensors, tensors, [&](const Behind& behind) {
    Tensors all = behind(tensors);
    return behind_->allreduce_coalesced(all, options);
  });
}

WorkPointer PrototypeBackend::reduce(Tensors& tensors,
                                     const c10d::ReduceOptions& options) {
  const bool is_root = getRank() == options.rootRank;
  return run(OpType::REDUCE, tensors, is_root ? tensors : Tensors{},
             [&](const Behind& behind) {
               Tensors all = behind(tensors);
               return behind_->reduce(all, options);
             });
}

WorkPointer PrototypeBackend::allgather(TensorLists& outputs, Tensors& inputs,
                                        const c10d::AllgatherOptions& options) {
  return run(OpType::ALLGATHER, inputs, flat(outputs), [&](const Behind& behind) {
    TensorLists to = behind(outputs);
    Tensors from = behind(inputs);
    return behind_->allgather(to, from, options);
  });
}

WorkPointer PrototypeBackend::_allgather_base(at::Tensor& output, at::Tensor& input,
                                              const c10d::AllgatherOptions& options) {
  return run(OpType::_ALLGATHER_BASE, {input}, {output}, [&](const Behind& behind) {
    at::Tensor to = behind(output), from = behind(input);
    return behind_->_allgather_base(to, from, options);
  });
}

WorkPointer PrototypeBackend::allgather_coalesced(
    TensorLists& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) {
  return run(OpType::ALLGATHER_COALESCED, inputs, flat(outputs),
             [&](const Behind& behind) {
               TensorLists to = behind(outputs);
               Tensors from = behind(inputs);
               return behind_->allgather_coalesced(to, from, options);
             });
}

WorkPointer PrototypeBackend::allgather_into_tensor_coalesced(
    Tensors& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) {
  return run(OpType::COALESCED, inputs, outputs, [&](const Behind& behind) {
    Tensors to = behind(outputs), from = behind(inputs);
    return behind_->allgather_into_tensor_coalesced(to, from, options);
  });
}

WorkPointer PrototypeBackend::gather(TensorLists& outputs, Tensors& inputs,
                                     const c10d::GatherOptions& options) {
  return run(OpType::GATHER, inputs, flat(outputs), [&](const Behind& behind) {
    TensorLists to = behind(outputs);
    Tensors from = behind(inputs);
    return behind_->gather(to, from, options);
  });
}

WorkPointer PrototypeBackend::scatter(Tensors& outputs, TensorLists& inputs,
                                      const c10d::ScatterOptions& options) {
  return run(OpType::SCATTER, flat(inputs), outputs, [&](const Behind& behind) {
    Tensors to = behind(outputs);
    TensorLists from = behind(inputs);
    return behind_->scatter(to, from, options);
  });
}

WorkPointer PrototypeBackend::reduce_scatter(
    Tensors& outputs, TensorLists& inputs, const c10d::ReduceScatterOptions& options) {
  return run(OpType::REDUCE_SCATTER, flat(inputs), outputs, [&](const Behind& behind) {
    Tensors to = behind(outputs);
    TensorLists from = behind(inputs);
    return behind_->reduce_scatter(to, from, options);
  });
}

WorkPointer PrototypeBackend::_reduce_scatter_base(
    at::Tensor& output, at::Tensor& input, const c10d::ReduceScatterOptions& options) {
  return run(OpType::_REDUCE_SCATTER_BASE, {input}, {output},
             [&](const Behind& behind) {
               at::Tensor to = behind(output), from = behind(input);
               return behind_->_reduce_scatter_base(to, from, options);
             });
}

WorkPointer PrototypeBackend::reduce_scatter_tensor_coalesced(
    Tensors& outputs, Tensors& inputs, const c10d::ReduceScatterOptions& options) {
  return run(OpType::REDUCE_SCATTER_TENSOR_COALESCED, inputs, outputs,
             [&](const Behind& behind) {
               Tensors to = behind(outputs), from = behind(inputs);
               return behind_->reduce_scatter_tensor_coalesced(to, from, options);
             });
}

WorkPointer PrototypeBackend::alltoall_base(at::Tensor& output, at::Tensor& input,
                                            std::vector<int64_t>& output_splits,
                                            std::vector<int64_t>& input_splits,
                                            const c10d::AllToAllOptions& options) {
  return run(OpType::ALLTOALL_BASE, {input}, {output}, [&](const Behind& behind) {
    at::Tensor to = behind(output), from = behind(input);
    return behind_->alltoall_base(to, from, output_splits, input_splits, options);
  });
}

WorkPointer PrototypeBackend::alltoall(Tensors& outputs, Tensors& inputs,
                                       const c10d::AllToAllOptions& options) {
  return run(OpType::ALLTOALL, inputs, outputs, [&](const Behind& behind) {
    Tensors to = behind(outputs), from = behind(inputs);
    return behind_->alltoall(to, from, options);
  });
}

WorkPointer PrototypeBackend::send(Tensors& tensors, int to, int tag) {
  return run(OpType::SEND, tensors, {}, [&](const Behind& behind) {
    Tensors all = behind(tensors);
    return behind_->send(all, to, tag);
  });
}

WorkPointer PrototypeBackend::recv(Tensors& tensors, int from, int tag) {
  return run(OpType::RECV, {}, tensors, [&](const Behind& behind) {
    Tensors all = behind(tensors);
    return behind_->recv(all, from, tag);
  });
}

WorkPointer PrototypeBackend::recvAnysource(Tensors& tensors, int tag) {
  return run(OpType::RECVANYSOURCE, {}, tensors, [&](const Behind& behind) {
    Tensors all = behind(tensors);
    return behind_->recvAnysource(all, tag);
  });
}

WorkPointer PrototypeBackend::barrier(const c10d::BarrierOptions& options) {
  return behind_->barrier(behind_all_streams(options));
}

void PrototypeBackend::monitoredBarrier(const c10d::BarrierOptions& options,
                                        bool wait_all) {
  behind_->monitoredBarrier(behind_all_streams(options), wait_all);
}

void PrototypeBackend::startCoalescing() {
  behind_->startCoalescing();
  const std::lock_guard<Mutex> lock(mutex_);
  is_coalescing_ = true;
  coalesced_.clear();
}

WorkPointer PrototypeBackend::endCoalescing() {
  WorkPointer inner = behind_->endCoalescing();
  std::vector<c10::intrusive_ptr<RenamedWork>> works;
  {
    const std::lock_guard<Mutex> lock(mutex_);
    is_coalescing_ = false;
    works = std::exchange(coalesced_, {});
  }
  std::vector<std::shared_ptr<RenamedCall>> copied;
  Tensors results;
  for (const auto& each : works) {
    copied.insert(copied.end(), each->copied().begin(), each->copied().end());
    const Tensors some = each->result();
    results.insert(results.end(), some.begin(), some.end());
  }
  return c10::make_intrusive<RenamedWork>(OpType::COALESCED, std::move(inner),
                                          std::move(copied), std::move(results));
}

}  // namespace xpurt

// PyTorch's ops of collectives, for xpu tensors: each calls the group's backend.
#include <torch/library.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "distributed/backend.h"

namespace xpurt {
namespace {

using namespace c10d;
using at::TensorList;
using Group = c10::intrusive_ptr<ProcessGroup>;
using Operation = c10::intrusive_ptr<ReduceOp>;
using std::chrono::milliseconds;

BackendPointer of(const Group& group) {
  return backend_for_xpu(*group);
}

WorkPointer send_op(TensorList tensors, const Group& group, int64_t to, int64_t tag) {
  Tensors all = tensors.vec();
  return of(group)->send(all, static_cast<int>(to), static_cast<int>(tag));
}

WorkPointer recv_op(TensorList tensors, const Group& group, int64_t from, int64_t tag) {
  Tensors all = tensors.vec();
  return of(group)->recv(all, static_cast<int>(from), static_cast<int>(tag));
}

WorkPointer recv_any_op(TensorList tensors, const Group& group, int64_t tag) {
  Tensors all = tensors.vec();
  return of(group)->recvAnysource(all, static_cast<int>(tag));
}

std::tuple<Tensors, WorkPointer> broadcast_op(TensorList tensors, const Group& group,
                                              int64_t root, int64_t root_tensor,
                                              bool async, int64_t timeout) {
  Tensors all = tensors.vec();
  WorkPointer work =
      of(group)->broadcast(all, {root, root_tensor, milliseconds(timeout), async});
  return {std::move(all), std::move(work)};
}

WorkPointer reduce_op(TensorList tensors, const Group& group,
                      const Operation& operation, int64_t root, int64_t root_tensor,
                      bool async, int64_t timeout) {
  Tensors all = tensors.vec();
  return of(group)->reduce(
      all, {*operation, root, root_tensor, milliseconds(timeout), async});
}

std::tuple<Tensors, WorkPointer> allreduce_op(TensorList tensors, const Group& group,
                                              const Operation& operation,
                                              const std::optional<at::Tensor>&,
                                              bool async, int64_t timeout) {
  Tensors all = tensors.vec();
  WorkPointer work =
      of(group)->allreduce(all, {*operation, milliseconds(timeout), async});
  return {std::move(all), std::move(work)};
}

WorkPointer allreduce_coalesced_op(TensorList tensors, const Group& group,
                                   const Operation& operation, bool async,
                                   int64_t timeout) {
  Tensors all = tensors.vec();
  return of(group)->allreduce_coalesced(
      all, AllreduceCoalescedOptions{{*operation, milliseconds(timeout), async}});
}

std::tuple<TensorLists, WorkPointer> allgather_op(const TensorLists& outputs,
                                                  TensorList inputs, const Group& group,
                                                  bool async, int64_t timeout) {
  TensorLists to = outputs;
  Tensors from = inputs.vec();
  WorkPointer work = of(group)->allgather(to, from, {milliseconds(timeout), async});
  return {std::move(to), std::move(work)};
}

std::tuple<at::Tensor, WorkPointer> allgather_base_op(at::Tensor& output,
                                                      at::Tensor& input,
                                                      const Group& group, bool async,
                                                      int64_t timeout) {
  WorkPointer work =
      of(group)->_allgather_base(output, input, {milliseconds(timeout), async});
  return {output, std::move(work)};
}

WorkPointer allgather_coalesced_op(const TensorLists& outputs, const TensorList& inputs,
                                   const Group& group, bool async) {
  TensorLists to = outputs;
  Tensors from = inputs.vec();
  return of(group)->allgather_coalesced(to, from, {kUnsetTimeout, async});
}

WorkPointer allgather_into_tensor_coalesced_op(TensorList outputs, TensorList inputs,
                                               const Group& group, bool async) {
  Tensors to = outputs.vec();
  Tensors from = inputs.vec();
  return of(group)->allgather_into_tensor_coalesced(to, from, {kUnsetTimeout, async});
}

std::tuple<Tensors, WorkPointer> reduce_scatter_op(const TensorList& outputs,
                                                   const TensorLists& inputs,
                                                   const Group& group,
                                                   const Operation& operation,
                                                   bool async, int64_t timeout) {
  Tensors to = outputs.vec();
  TensorLists from = inputs;
  WorkPointer work =
      of(group)->reduce_scatter(to, from, {*operation, milliseconds(timeout), async});
  return {std::move(to), std::move(work)};
}

std::tuple<at::Tensor, WorkPointer> reduce_scatter_base_op(
    at::Tensor& output, at::Tensor& input, const Group& group,
    const Operation& operation, bool async, int64_t timeout) {
  WorkPointer work = of(group)->_reduce_scatter_base(
      output, input, {*operation, milliseconds(timeout), async});
  return {output, std::move(work)};
}

WorkPointer reduce_scatter_tensor_coalesced_op(TensorList outputs, TensorList inputs,
                                               const Group& group,
                                               const Operation& operation, bool async,
                                               int64_t timeout) {
  Tensors to = outputs.vec();
  Tensors from = inputs.vec();
  return of(group)->reduce_scatter_tensor_coalesced(
      to, from, {*operation, milliseconds(timeout), async});
}

WorkPointer gather_op(const TensorLists& outputs, const TensorList& inputs,
                      const Group& group, int64_t root, bool async, int64_t timeout) {
  TensorLists to = outputs;
  Tensors from = inputs.vec();
  return of(group)->gather(to, from, {root, milliseconds(timeout), async});
}

std::tuple<Tensors, WorkPointer> scatter_op(const TensorList& outputs,
                                            const TensorLists& inputs,
                                            const Group& group, int64_t root,
                                            bool async, int64_t timeout) {
  Tensors to = outputs.vec();
  TensorLists from = inputs;
  WorkPointer work = of(group)->scatter(to, from, {root, milliseconds(timeout), async});
  return {std::move(to), std::move(work)};
}

std::tuple<Tensors, WorkPointer> alltoall_op(const TensorList& outputs,
                                             const TensorList& inputs,
                                             const Group& group, bool async,
                                             int64_t timeout) {
  Tensors to = outputs.vec();
  Tensors from = inputs.vec();
  WorkPointer work = of(group)->alltoall(to, from, {milliseconds(timeout), async});
  return {std::move(to), std::move(work)};
}

WorkPointer alltoall_base_op(at::Tensor& output, at::Tensor& input, const Group& group,
                             std::vector<int64_t> output_splits,
                             std::vector<int64_t> input_splits, bool async,
                             int64_t timeout) {
  return of(group)->alltoall_base(output, input, output_splits, input_splits,
                                  {milliseconds(timeout), async});
}

WorkPointer barrier_op(at::Tensor, const Group& group,
                       const std::vector<int64_t>& device_ids, bool async,
                       int64_t timeout) {
  BarrierOptions options;
  options.device_ids = device_ids;
  options.timeout = milliseconds(timeout);
  options.asyncOp = async;
  return of(group)->barrier(options);
}

void monitored_barrier_op(at::Tensor, const Group& group,
                          const std::vector<int64_t>& device_ids, int64_t timeout,
                          bool wait_all) {
  BarrierOptions options;
  options.device_ids = device_ids;
  options.timeout = milliseconds(timeout);
  of(group)->monitoredBarrier(options, wait_all);
}

TORCH_LIBRARY_IMPL(c10d, XPU, m) {
  m.impl("send", &send_op);
  m.impl("recv_", &recv_op);
  m.impl("recv_any_source_", &recv_any_op);
  m.impl("broadcast_", &broadcast_op);
  m.impl("reduce_", &reduce_op);
  m.impl("allreduce_", &allreduce_op);
  m.impl("allreduce_coalesced_", &allreduce_coalesced_op);
  m.impl("allgather_", &allgather_op);
  m.impl("_allgather_base_", &allgather_base_op);
  m.impl("allgather_coalesced_", &allgather_coalesced_op);
  m.impl("allgather_into_tensor_coalesced_", &allgather_into_tensor_coalesced_op);
  m.impl("reduce_scatter_", &reduce_scatter_op);
  m.impl("_reduce_scatter_base_", &reduce_scatter_base_op);
  m.impl("reduce_scatter_tensor_coalesced_", &reduce_scatter_tensor_coalesced_op);
  m.impl("gather_", &gather_op);
  m.impl("scatter_", &scatter_op);
  m.impl("alltoall_", &alltoall_op);
  m.impl("alltoall_base_", &alltoall_base_op);
  m.impl("barrier", &barrier_op);
  m.impl("monitored_barrier_", &monitored_barrier_op);
}

TORCH_LIBRARY_IMPL(c10d, SparseXPU, m) {
  m.impl("allreduce_", &allreduce_op);
}

}  // namespace
}  // namespace xpurt

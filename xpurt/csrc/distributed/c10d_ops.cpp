#include "distributed/c10d_ops.h"

#include <array>
#include <atomic>

namespace xpurt {
namespace {

using namespace c10d;
using at::TensorList;
using Group = c10::intrusive_ptr<ProcessGroup>;
using Operation = c10::intrusive_ptr<ReduceOp>;
using std::chrono::milliseconds;

// By device type.
std::array<std::atomic<FindBackend>, c10::COMPILE_TIME_MAX_DEVICE_TYPES> finders{};

BackendPointer of(const Group& group, const at::Tensor& tensor) {
  const c10::DeviceType type = tensor.device().type();
  const FindBackend find = finders[static_cast<size_t>(type)];
  return find != nullptr ? find(*group) : group->getBackend(type);
}

BackendPointer of(const Group& group, TensorList tensors) {
  TORCH_CHECK_VALUE(!tensors.empty(), "a collective needs a tensor; the list is empty");
  return of(group, tensors.front());
}

WorkPointer send_op(TensorList tensors, const Group& group, int64_t to, int64_t tag) {
  Tensors all = tensors.vec();
  return of(group, tensors)->send(all, static_cast<int>(to), static_cast<int>(tag));
}

WorkPointer recv_op(TensorList tensors, const Group& group, int64_t from, int64_t tag) {
  Tensors all = tensors.vec();
  return of(group, tensors)->recv(all, static_cast<int>(from), static_cast<int>(tag));
}

WorkPointer recv_any_op(TensorList tensors, const Group& group, int64_t tag) {
  Tensors all = tensors.vec();
  return of(group, tensors)->recvAnysource(all, static_cast<int>(tag));
}

std::tuple<Tensors, WorkPointer> broadcast_op(TensorList tensors, const Group& group,
                                              int64_t root, int64_t root_tensor,
                                              bool async, int64_t timeout) {
  Tensors all = tensors.vec();
  WorkPointer work =
      of(group, tensors)
          ->broadcast(all, {root, root_tensor, milliseconds(timeout), async});
  return {std::move(all), std::move(work)};
}

WorkPointer reduce_op(TensorList tensors, const Group& group,
                      const Operation& operation, int64_t root, int64_t root_tensor,
                      bool async, int64_t timeout) {
  Tensors all = tensors.vec();
  return of(group, tensors)
      ->reduce(all, {*operation, root, root_tensor, milliseconds(timeout), async});
}

std::tuple<Tensors, WorkPointer> allreduce_op(TensorList tensors, const Group& group,
                                              const Operation& operation,
                                              const std::optional<at::Tensor>&,
                                              bool async, int64_t timeout) {
  Tensors all = tensors.vec();
  WorkPointer work =
      of(group, tensors)->allreduce(all, {*operation, milliseconds(timeout), async});
  return {std::move(all), std::move(work)};
}

WorkPointer allreduce_coalesced_op(TensorList tensors, const Group& group,
                                   const Operation& operation, bool async,
                                   int64_t timeout) {
  Tensors all = tensors.vec();
  return of(group, tensors)
      ->allreduce_coalesced(
          all, AllreduceCoalescedOptions{{*operation, milliseconds(timeout), async}});
}

std::tuple<TensorLists, WorkPointer> allgather_op(const TensorLists& outputs,
                                                  TensorList inputs, const Group& group,
                                                  bool async, int64_t timeout) {
  TensorLists to = outputs;
  Tensors from = inputs.vec();
  WorkPointer work =
      of(group, inputs)->allgather(to, from, {milliseconds(timeout), async});
  return {std::move(to), std::move(work)};
}

std::tuple<at::Tensor, WorkPointer> allgather_base_op(at::Tensor& output,
                                                      at::Tensor& input,
                                                      const Group& group, bool async,
                                                      int64_t timeout) {
  WorkPointer work =
      of(group, output)->_allgather_base(output, input, {milliseconds(timeout), async});
  return {output, std::move(work)};
}

WorkPointer allgather_coalesced_op(const TensorLists& outputs, const TensorList& inputs,
                                   const Group& group, bool async) {
  TensorLists to = outputs;
  Tensors from = inputs.vec();
  return of(group, inputs)->allgather_coalesced(to, from, {kUnsetTimeout, async});
}

WorkPointer allgather_into_tensor_coalesced_op(TensorList outputs, TensorList inputs,
                                               const Group& group, bool async) {
  Tensors to = outputs.vec();
  Tensors from = inputs.vec();
  return of(group, outputs)
      ->allgather_into_tensor_coalesced(to, from, {kUnsetTimeout, async});
}

std::tuple<Tensors, WorkPointer> reduce_scatter_op(const TensorList& outputs,
                                                   const TensorLists& inputs,
                                                   const Group& group,
                                                   const Operation& operation,
                                                   bool async, int64_t timeout) {
  Tensors to = outputs.vec();
  TensorLists from = inputs;
  WorkPointer work =
      of(group, outputs)
          ->reduce_scatter(to, from, {*operation, milliseconds(timeout), async});
  return {std::move(to), std::move(work)};
}

std::tuple<at::Tensor, WorkPointer> reduce_scatter_base_op(
    at::Tensor& output, at::Tensor& input, const Group& group,
    const Operation& operation, bool async, int64_t timeout) {
  WorkPointer work = of(group, output)
                         ->_reduce_scatter_base(
                             output, input, {*operation, milliseconds(timeout), async});
  return {output, std::move(work)};
}

WorkPointer reduce_scatter_tensor_coalesced_op(TensorList outputs, TensorList inputs,
                                               const Group& group,
                                               const Operation& operation, bool async,
                                               int64_t timeout) {
  Tensors to = outputs.vec();
  Tensors from = inputs.vec();
  return of(group, outputs)
      ->reduce_scatter_tensor_coalesced(to, from,
                                        {*operation, milliseconds(timeout), async});
}

WorkPointer gather_op(const TensorLists& outputs, const TensorList& inputs,
                      const Group& group, int64_t root, bool async, int64_t timeout) {
  TensorLists to = outputs;
  Tensors from = inputs.vec();
  return of(group, inputs)->gather(to, from, {root, milliseconds(timeout), async});
}

std::tuple<Tensors, WorkPointer> scatter_op(const TensorList& outputs,
                                            const TensorLists& inputs,
                                            const Group& group, int64_t root,
                                            bool async, int64_t timeout) {
  Tensors to = outputs.vec();
  TensorLists from = inputs;
  WorkPointer work =
      of(group, outputs)->scatter(to, from, {root, milliseconds(timeout), async});
  return {std::move(to), std::move(work)};
}

std::tuple<Tensors, WorkPointer> alltoall_op(const TensorList& outputs,
                                             const TensorList& inputs,
                                             const Group& group, bool async,
                                             int64_t timeout) {
  Tensors to = outputs.vec();
  Tensors from = inputs.vec();
  WorkPointer work =
      of(group, outputs)->alltoall(to, from, {milliseconds(timeout), async});
  return {std::move(to), std::move(work)};
}

WorkPointer alltoall_base_op(at::Tensor& output, at::Tensor& input, const Group& group,
                             std::vector<int64_t> output_splits,
                             std::vector<int64_t> input_splits, bool async,
                             int64_t timeout) {
  return of(group, output)
      ->alltoall_base(output, input, output_splits, input_splits,
                      {milliseconds(timeout), async});
}

WorkPointer barrier_op(at::Tensor mark, const Group& group,
                       const std::vector<int64_t>& device_ids, bool async,
                       int64_t timeout) {
  BarrierOptions options;
  options.device_ids = device_ids;
  options.timeout = milliseconds(timeout);
  options.asyncOp = async;
  return of(group, mark)->barrier(options);
}

void monitored_barrier_op(at::Tensor mark, const Group& group,
                          const std::vector<int64_t>& device_ids, int64_t timeout,
                          bool wait_all) {
  BarrierOptions options;
  options.device_ids = device_ids;
  options.timeout = milliseconds(timeout);
  of(group, mark)->monitoredBarrier(options, wait_all);
}

}  // namespace

void register_c10d_ops(c10::DeviceType type, torch::Library& library, FindBackend find,
                       const WantedOp& is_wanted) {
  finders[static_cast<size_t>(type)] = find;
  const auto add = [&](const char* op, auto* kernel) {
    if (is_wanted(op)) library.impl(op, kernel);
  };
  add("send", &send_op);
  add("recv_", &recv_op);
  add("recv_any_source_", &recv_any_op);
  add("broadcast_", &broadcast_op);
  add("reduce_", &reduce_op);
  add("allreduce_", &allreduce_op);
  add("allreduce_coalesced_", &allreduce_coalesced_op);
  add("allgather_", &allgather_op);
  add("_allgather_base_", &allgather_base_op);
  add("allgather_coalesced_", &allgather_coalesced_op);
  add("allgather_into_tensor_coalesced_", &allgather_into_tensor_coalesced_op);
  add("reduce_scatter_", &reduce_scatter_op);
  add("_reduce_scatter_base_", &reduce_scatter_base_op);
  add("reduce_scatter_tensor_coalesced_", &reduce_scatter_tensor_coalesced_op);
  add("gather_", &gather_op);
  add("scatter_", &scatter_op);
  add("alltoall_", &alltoall_op);
  add("alltoall_base_", &alltoall_base_op);
  add("barrier", &barrier_op);
  add("monitored_barrier_", &monitored_barrier_op);
}

namespace {

TORCH_LIBRARY_IMPL(c10d, XPU, m) {
  register_c10d_ops(c10::DeviceType::XPU, m, &backend_for_xpu,
                    [](const char*) { return true; });
}

TORCH_LIBRARY_IMPL(c10d, SparseXPU, m) {
  m.impl("allreduce_", &allreduce_op);
}

}  // namespace
}  // namespace xpurt

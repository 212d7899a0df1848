// One row per collective: what it reads, what it writes, and the inner backend's call.
#include "distributed/backend.h"

#include <ATen/ops/chunk.h>

namespace xpurt {
namespace {

using c10d::OpType;

Tensors flat(const TensorLists& lists) {
  Tensors all;
  for (const Tensors& each : lists) all.insert(all.end(), each.begin(), each.end());
  return all;
}

// The options with the operation that the inner backend has.
template <typename Options>
Options with(Options options, const Reduction& reduction) {
  options.reduceOp = reduction.operation();
  return options;
}

// A gather into one tensor, or a scatter from it, is one of its equal parts: the shape
// does not matter, as with NCCL, and gloo compares shapes.
at::Tensor as_line(const at::Tensor& tensor) {
  return tensor.view(-1);
}

Tensors parts_of(const at::Tensor& whole, int64_t parts) {
  return as_line(whole).chunk(parts);
}

void check_parts(const char* name, const at::Tensor& whole, const at::Tensor& part,
                 int ranks) {
  TORCH_CHECK_VALUE(whole.numel() == part.numel() * ranks, name, " among ", ranks,
                    " ranks needs a large tensor of ", ranks,
                    " times the elements of the small one; found ", whole.numel(),
                    " and ", part.numel());
  TORCH_CHECK_TYPE(whole.scalar_type() == part.scalar_type(), name,
                   " needs tensors of one type; found ", whole.scalar_type(), " and ",
                   part.scalar_type());
}

}  // namespace

WorkPointer XpuBackend::broadcast(Tensors& tensors,
                                  const c10d::BroadcastOptions& options) {
  const bool is_root = getRank() == options.rootRank;
  return run({OpType::BROADCAST, is_root ? tensors : Tensors{},
              is_root ? Tensors{} : tensors,
              [=](Backend& inner, const HostForms& host) {
                Tensors all = host(tensors);
                return inner.broadcast(all, options);
              }});
}

WorkPointer XpuBackend::allreduce(Tensors& tensors,
                                  const c10d::AllreduceOptions& options) {
  const Reduction reduction(options.reduceOp, getSize());
  return run({OpType::ALLREDUCE, tensors, tensors,
              [=](Backend& inner, const HostForms& host) {
                Tensors all = host(tensors);
                return inner.allreduce(all, with(options, reduction));
              },
              reduction});
}

WorkPointer XpuBackend::allreduce_coalesced(
    Tensors& tensors, const c10d::AllreduceCoalescedOptions& options) {
  const Reduction reduction(options.reduceOp, getSize());
  return run({OpType::ALLREDUCE_COALESCED, tensors, tensors,
              [=](Backend& inner, const HostForms& host) {
                Tensors all = host(tensors);
                return inner.allreduce_coalesced(all, with(options, reduction));
              },
              reduction});
}

WorkPointer XpuBackend::reduce(Tensors& tensors, const c10d::ReduceOptions& options) {
  const Reduction reduction(options.reduceOp, getSize());
  const bool is_root = getRank() == options.rootRank;
  return run({OpType::REDUCE, tensors, is_root ? tensors : Tensors{},
              [=](Backend& inner, const HostForms& host) {
                Tensors all = host(tensors);
                return inner.reduce(all, with(options, reduction));
              },
              reduction});
}

WorkPointer XpuBackend::allgather(TensorLists& outputs, Tensors& inputs,
                                  const c10d::AllgatherOptions& options) {
  return run({OpType::ALLGATHER, inputs, flat(outputs),
              [=](Backend& inner, const HostForms& host) {
                TensorLists to = host(outputs);
                Tensors from = host(inputs);
                return inner.allgather(to, from, options);
              }});
}

WorkPointer XpuBackend::_allgather_base(at::Tensor& output, at::Tensor& input,
                                        const c10d::AllgatherOptions& options) {
  check_parts("all_gather_into_tensor", output, input, getSize());
  return run({OpType::_ALLGATHER_BASE,
              {input},
              {output},
              [=, ranks = getSize()](Backend& inner, const HostForms& host) {
                TensorLists to{parts_of(host(output), ranks)};
                Tensors from{as_line(host(input))};
                return inner.allgather(to, from, options);
              }});
}

WorkPointer XpuBackend::allgather_coalesced(TensorLists& outputs, Tensors& inputs,
                                            const c10d::AllgatherOptions& options) {
  return run({OpType::ALLGATHER_COALESCED, inputs, flat(outputs),
              [=](Backend& inner, const HostForms& host) {
                TensorLists to = host(outputs);
                Tensors from = host(inputs);
                return inner.allgather_coalesced(to, from, options);
              }});
}

WorkPointer XpuBackend::allgather_into_tensor_coalesced(
    Tensors& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) {
  return run(
      {OpType::COALESCED, inputs, outputs, [=](Backend& inner, const HostForms& host) {
         Tensors to = host(outputs);
         Tensors from = host(inputs);
         return inner.allgather_into_tensor_coalesced(to, from, options);
       }});
}

WorkPointer XpuBackend::gather(TensorLists& outputs, Tensors& inputs,
                               const c10d::GatherOptions& options) {
  return run({OpType::GATHER, inputs, flat(outputs),
              [=](Backend& inner, const HostForms& host) {
                TensorLists to = host(outputs);
                Tensors from = host(inputs);
                return inner.gather(to, from, options);
              }});
}

WorkPointer XpuBackend::scatter(Tensors& outputs, TensorLists& inputs,
                                const c10d::ScatterOptions& options) {
  return run({OpType::SCATTER, flat(inputs), outputs,
              [=](Backend& inner, const HostForms& host) {
                Tensors to = host(outputs);
                TensorLists from = host(inputs);
                return inner.scatter(to, from, options);
              }});
}

WorkPointer XpuBackend::reduce_scatter(Tensors& outputs, TensorLists& inputs,
                                       const c10d::ReduceScatterOptions& options) {
  const Reduction reduction(options.reduceOp, getSize());
  return run({OpType::REDUCE_SCATTER, flat(inputs), outputs,
              [=](Backend& inner, const HostForms& host) {
                Tensors to = host(outputs);
                TensorLists from = host(inputs);
                return inner.reduce_scatter(to, from, with(options, reduction));
              },
              reduction});
}

WorkPointer XpuBackend::_reduce_scatter_base(
    at::Tensor& output, at::Tensor& input, const c10d::ReduceScatterOptions& options) {
  check_parts("reduce_scatter_tensor", input, output, getSize());
  const Reduction reduction(options.reduceOp, getSize());
  return run({OpType::_REDUCE_SCATTER_BASE,
              {input},
              {output},
              [=](Backend& inner, const HostForms& host) {
                at::Tensor to = as_line(host(output));
                at::Tensor from = as_line(host(input));
                return inner._reduce_scatter_base(to, from, with(options, reduction));
              },
              reduction});
}

WorkPointer XpuBackend::reduce_scatter_tensor_coalesced(
    Tensors& outputs, Tensors& inputs, const c10d::ReduceScatterOptions& options) {
  const Reduction reduction(options.reduceOp, getSize());
  return run({OpType::REDUCE_SCATTER_TENSOR_COALESCED, inputs, outputs,
              [=](Backend& inner, const HostForms& host) {
                Tensors to = host(outputs);
                Tensors from = host(inputs);
                return inner.reduce_scatter_tensor_coalesced(to, from,
                                                             with(options, reduction));
              },
              reduction});
}

WorkPointer XpuBackend::alltoall_base(at::Tensor& output, at::Tensor& input,
                                      std::vector<int64_t>& output_splits,
                                      std::vector<int64_t>& input_splits,
                                      const c10d::AllToAllOptions& options) {
  return run({OpType::ALLTOALL_BASE,
              {input},
              {output},
              [=](Backend& inner, const HostForms& host) {
                at::Tensor to = host(output);
                at::Tensor from = host(input);
                auto of_output = output_splits;
                auto of_input = input_splits;
                return inner.alltoall_base(to, from, of_output, of_input, options);
              }});
}

WorkPointer XpuBackend::alltoall(Tensors& outputs, Tensors& inputs,
                                 const c10d::AllToAllOptions& options) {
  return run(
      {OpType::ALLTOALL, inputs, outputs, [=](Backend& inner, const HostForms& host) {
         Tensors to = host(outputs);
         Tensors from = host(inputs);
         return inner.alltoall(to, from, options);
       }});
}

WorkPointer XpuBackend::send(Tensors& tensors, int to, int tag) {
  return run({OpType::SEND, tensors, {}, [=](Backend& inner, const HostForms& host) {
                Tensors all = host(tensors);
                return inner.send(all, to, tag);
              }});
}

WorkPointer XpuBackend::recv(Tensors& tensors, int from, int tag) {
  return run({OpType::RECV, {}, tensors, [=](Backend& inner, const HostForms& host) {
                Tensors all = host(tensors);
                return inner.recv(all, from, tag);
              }});
}

WorkPointer XpuBackend::recvAnysource(Tensors& tensors, int tag) {
  return run(
      {OpType::RECVANYSOURCE, {}, tensors, [=](Backend& inner, const HostForms& host) {
         Tensors all = host(tensors);
         return inner.recvAnysource(all, tag);
       }});
}

}  // namespace xpurt

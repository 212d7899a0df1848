// One row per collective: what it reads, what it writes, and the inner backend's call.
#include "distributed/backend.h"

#include <ATen/ops/cat.h>

#include <numeric>

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

c10d::AllreduceOptions with_sum(const c10d::ReduceScatterOptions& options,
                                const Reduction& reduction) {
  return {reduction.operation(), options.timeout, options.asyncOp};
}

// A gather into one tensor, or a scatter from it, is one of its equal parts: the shape
// does not matter, as with NCCL, and gloo compares shapes.
at::Tensor as_line(const at::Tensor& tensor) {
  return tensor.view(-1);
}

Tensors as_lines(const Tensors& tensors) {
  Tensors lines;
  for (const at::Tensor& each : tensors) lines.push_back(as_line(each));
  return lines;
}

std::vector<int64_t> sizes_of(const Tensors& tensors) {
  std::vector<int64_t> sizes;
  for (const at::Tensor& each : tensors) sizes.push_back(each.numel());
  return sizes;
}

int64_t sum_of(const std::vector<int64_t>& numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), int64_t{0});
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
  if (const Tensors chunks = chunks_of(tensors); !chunks.empty()) {
    return run_chunks(OpType::BROADCAST, tensors, chunks,
                      [&](Tensors& each) { return broadcast(each, options); });
  }
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
  if (const Tensors chunks = chunks_of(tensors); !chunks.empty()) {
    return run_chunks(OpType::ALLREDUCE, tensors, chunks,
                      [&](Tensors& each) { return allreduce(each, options); });
  }
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
  return run_pairs(OpType::COALESCED, outputs, inputs, [&](auto& to, auto& from) {
    return _allgather_base(to, from, options);
  });
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

// Gloo's own reduce_scatter is the all_reduce of a copy, and its work has no future. So
// this is the all_reduce of a copy, too, and gives the same numbers.
WorkPointer XpuBackend::reduce_scatter(Tensors& outputs, TensorLists& inputs,
                                       const c10d::ReduceScatterOptions& options) {
  const bool is_one = outputs.size() == 1 && inputs.size() == 1;
  TORCH_CHECK_VALUE(is_one && static_cast<int>(inputs.front().size()) == getSize(),
                    "reduce_scatter needs one output, and one input for each of the ",
                    getSize(), " ranks");
  const Reduction reduction(options.reduceOp, getSize());
  const auto sum = std::make_shared<at::Tensor>();
  return run({OpType::REDUCE_SCATTER, inputs.front(), outputs,
              [=](Backend& inner, const HostForms& host) {
                *sum = at::cat(as_lines(host(inputs.front())));
                Tensors one{*sum};
                return inner.allreduce(one, with_sum(options, reduction));
              },
              reduction,
              [=, rank = getRank()](const HostForms& host) {
                const at::Tensor to = as_line(host(outputs.front()));
                const auto sizes = sizes_of(host(inputs.front()));
                to.copy_(sum->split_with_sizes(sizes)[rank]);
              }});
}

WorkPointer XpuBackend::_reduce_scatter_base(
    at::Tensor& output, at::Tensor& input, const c10d::ReduceScatterOptions& options) {
  check_parts("reduce_scatter_tensor", input, output, getSize());
  const Reduction reduction(options.reduceOp, getSize());
  const auto sum = std::make_shared<at::Tensor>();
  return run({OpType::_REDUCE_SCATTER_BASE,
              {input},
              {output},
              [=](Backend& inner, const HostForms& host) {
                *sum = as_line(host(input)).clone();
                Tensors one{*sum};
                return inner.allreduce(one, with_sum(options, reduction));
              },
              reduction,
              [=, rank = getRank()](const HostForms& host) {
                const at::Tensor to = as_line(host(output));
                to.copy_(sum->narrow(0, rank * to.numel(), to.numel()));
              }});
}

WorkPointer XpuBackend::reduce_scatter_tensor_coalesced(
    Tensors& outputs, Tensors& inputs, const c10d::ReduceScatterOptions& options) {
  return run_pairs(
      OpType::REDUCE_SCATTER_TENSOR_COALESCED, outputs, inputs,
      [&](auto& to, auto& from) { return _reduce_scatter_base(to, from, options); });
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

// Gloo's own takes tensors of one size alone.
WorkPointer XpuBackend::alltoall(Tensors& outputs, Tensors& inputs,
                                 const c10d::AllToAllOptions& options) {
  const auto ranks = static_cast<size_t>(getSize());
  TORCH_CHECK_VALUE(outputs.size() == ranks && inputs.size() == ranks,
                    "all_to_all needs one output and one input for each of the ", ranks,
                    " ranks; found ", outputs.size(), " and ", inputs.size());
  const auto received = std::make_shared<at::Tensor>();
  return run({OpType::ALLTOALL, inputs, outputs,
              [=](Backend& inner, const HostForms& host) {
                at::Tensor sent = at::cat(as_lines(host(inputs)));
                auto of_inputs = sizes_of(host(inputs));
                auto of_outputs = sizes_of(host(outputs));
                *received = sent.new_empty({sum_of(of_outputs)});
                return inner.alltoall_base(*received, sent, of_outputs, of_inputs,
                                           options);
              },
              std::nullopt,
              [=](const HostForms& host) {
                const Tensors to = as_lines(host(outputs));
                const Tensors from = received->split_with_sizes(sizes_of(to));
                for (size_t i = 0; i < ranks; ++i) to[i].copy_(from[i]);
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

// How a collective is run: see Note [Host forms] and Note [Order of launches].
#include <torch/csrc/distributed/c10d/Utils.hpp>

#include "distributed/backend.h"
#include "distributed/collective_work.h"
#include "host/gil.h"

namespace xpurt {
namespace {

using c10d::OpType;

HostForms::Elements elements_of(const Collective& collective) {
  if (!collective.reduction) return HostForms::Elements::copied;
  return collective.reduction->is_linear() ? HostForms::Elements::summed
                                           : HostForms::Elements::reduced;
}

// The parts of the first tensor are what the caller gave: for an error.
std::string describe(const Tensors& tensors) {
  if (tensors.empty()) return "no tensor";
  const at::Tensor& first = tensors.front();
  return c10::str(
      tensors.size() == 1 ? "" : c10::str(tensors.size(), " tensors, first "),
      toString(first.scalar_type()), " ", first.sizes());
}

// PyTorch's variable for its own backend of this name.
bool blocking_wait() {
  static const bool found = c10d::getCvarBool({"TORCH_XCCL_BLOCKING_WAIT"}, false);
  return found;
}

}  // namespace

const char* name_of(OpType type) {
  switch (type) {
    case OpType::BROADCAST:
      return "broadcast";
    case OpType::ALLREDUCE:
      return "all_reduce";
    case OpType::ALLREDUCE_COALESCED:
      return "all_reduce_coalesced";
    case OpType::REDUCE:
      return "reduce";
    case OpType::ALLGATHER:
      return "all_gather";
    case OpType::_ALLGATHER_BASE:
      return "all_gather_into_tensor";
    case OpType::ALLGATHER_COALESCED:
      return "all_gather_coalesced";
    case OpType::COALESCED:
      return "all_gather_into_tensor, coalesced";
    case OpType::GATHER:
      return "gather";
    case OpType::SCATTER:
      return "scatter";
    case OpType::REDUCE_SCATTER:
      return "reduce_scatter";
    case OpType::_REDUCE_SCATTER_BASE:
      return "reduce_scatter_tensor";
    case OpType::REDUCE_SCATTER_TENSOR_COALESCED:
      return "reduce_scatter_tensor, coalesced";
    case OpType::ALLTOALL_BASE:
      return "all_to_all_single";
    case OpType::ALLTOALL:
      return "all_to_all";
    case OpType::SEND:
      return "send";
    case OpType::RECV:
      return "recv";
    case OpType::RECVANYSOURCE:
      return "recv from any rank";
    case OpType::BARRIER:
      return "barrier";
    default:
      return "collective";
  }
}

std::string XpuBackend::title_of(const Collective& collective) const {
  const Tensors& tensors =
      collective.read.empty() ? collective.written : collective.read;
  return c10::str(name_of(collective.type), " (", describe(tensors), ") on rank ",
                  getRank(), " of ", getSize(), " in group \"", getGroupUid(), "\"");
}

WorkPointer XpuBackend::run(Collective collective) {
  WorkPointer work = run_one(std::move(collective));
  const std::lock_guard<Mutex> lock(mutex_);
  if (is_coalescing_) coalesced_.push_back(work);
  return work;
}

WorkPointer XpuBackend::run_one(Collective collective) {
  const WithoutGil released;
  const bool scales = collective.reduction && collective.reduction->scales_inputs();
  auto host = std::make_shared<HostForms>(elements_of(collective), scales);
  host->take(collective.read, collective.written);
  const Tensors& results =
      collective.type == OpType::SEND ? collective.read : collective.written;
  const bool is_peer = c10d::isP2POp(collective.type);
  c10::intrusive_ptr<CollectiveWork> work;
  if (is_peer) {
    work = c10::make_intrusive<PeerWork>(collective.type, title_of(collective), results,
                                         host->devices());
  } else {
    work = c10::make_intrusive<CollectiveWork>(collective.type, title_of(collective),
                                               results, host->devices());
  }
  if (!is_peer && !blocking_wait()) work->queue_results(*host);
  // The queue keeps this backend until the launch. Nothing keeps it longer: the inner
  // backend's threads must not be the ones that destroy it.
  auto self = c10::intrusive_ptr<XpuBackend>::unsafe_reclaim_from_nonowning(this);
  const auto launch = [self = std::move(self), work, host, is_peer,
                       collective = std::move(collective)](bool in_call) {
    try {
      host->fill();
      if (collective.reduction) collective.reduction->before(host->all_read());
      WorkPointer inner = collective.start(*self->inner_, *host);
      if (is_peer) {
        static_cast<PeerWork&>(*work).follow_peer(std::move(inner), host);
      } else {
        work->follow(inner, host,
                     [finish = collective.finish,
                      reduction = collective.reduction](HostForms& forms) {
                       if (finish) finish(forms);
                       if (reduction) reduction->after(forms.all_written());
                     });
      }
    } catch (...) {
      work->fail_to_launch(std::current_exception(), in_call);
    }
  };
  if (is_shared_) host->fill();
  const bool is_launched = launches_.submit(host->is_ready(), launch);
  // An argument that the inner backend refuses is an error of this call.
  if (is_launched && work->launch_error()) std::rethrow_exception(work->launch_error());
  return work;
}

}  // namespace xpurt

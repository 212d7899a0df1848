#include "native/host_run.h"

#include <ATen/core/List.h>
#include <ATen/core/ivalue.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>
#include <utility>

#include "memory/cpu_allocator.h"
#include "memory/replica/replica.h"
#include "op/stack_tensors.h"
#include "random/random.h"

namespace xpurt {
namespace {

using c10::IValue;

}  // namespace

HostRun::HostRun(OpRecord& record, c10::DeviceIndex index, torch::jit::Stack* stack)
    : record_(record), index_(index), stack_(stack) {
  if (call_->copies() || may_cross_devices()) announce();
}

void HostRun::run(c10::DispatchKeySet keys) {
  RandomDraw draw(record_, index_, stack_);
  std::optional<CopyAudit> audit;
  if (copies()) audit.emplace(record_, index_);
  convert_arguments(audit);
  call_->wait();
  if (audit) audit->kernel_begins();
  {
    ResultsOnDevice results(!copies() && !is_asked_elsewhere_);
    // The kernel may call other ops, which autocast of the CPU would cast.
    const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::DispatchKey::AutocastCPU);
    record_.host_kernel(record_.op, host_keys(keys), stack_);
  }
  check_written();
  if (audit) audit->kernel_ended(*stack_);
  call_->finish_arguments();
  is_asked_elsewhere_ ? own_results() : convert_results();
  bytes_copied_ = call_->bytes_copied();
  call_.reset();
  if (C10_UNLIKELY(!watched_.empty())) escape_kept();
  if (audit) audit->run_ended();
}

// Whether an operand may be on another ordinal than the results, whose memory the host
// may not read.
bool HostRun::may_cross_devices() {
  return record_.mixes_devices || std::ranges::any_of(record_.devices, [&](int i) {
           return argument(i).isDevice();
         });
}

void HostRun::announce() {
  for (size_t i = 0; i < record_.arguments; ++i) {
    const bool whole = record_.written[i] && record_.may_resize;
    for_each_tensor(argument(i),
                    [&](const at::Tensor& t) { call_->announce(t, whole); });
  }
}

// Whether the op may write to argument i. An op of another library may write to
// arguments that its schema does not mark, and collectives write after they returned.
// On an alias that does no harm if all other owners of these bytes release them:
// replicas, and tensors that share the bytes until they are written. For copies see
// Note [Ops on copies].
bool HostRun::may_write(size_t i, c10::Device device) const {
  if (record_.written[i]) return true;
  return !record_.is_aten_op && device.is_xpu() && host_reads(device.index());
}

at::Tensor HostRun::to_host(at::Tensor tensor, size_t i,
                            std::optional<CopyAudit>& audit) {
  if (!tensor.defined()) return tensor;
  const bool written =
      is_plain(tensor) ? may_write(i, tensor.device()) : record_.written[i];
  const bool wants_grad = record_.uses_requires_grad && tensor.requires_grad();
  at::Tensor host = call_->to_other(tensor, written);
  if (C10_UNLIKELY(!record_.is_aten_op)) watch(tensor, host);
  if (audit) audit->record_argument(i, tensor, host);
  if (is_asked_elsewhere_) hosts_.push_back(host);
  if (C10_UNLIKELY(written && !is_plain(tensor))) special_written_.push_back(host);
  if (wants_grad) host.set_requires_grad(true);
  return host;
}

// An alias that a kernel of another library keeps, as collectives do that end later, is
// an address that is known outside: such a storage stays at home. Copies are audited.
void HostRun::watch(const at::Tensor& original, const at::Tensor& host) {
  if (!is_plain(original) || !original.is_xpu() || !original.has_storage() ||
      ordinal(original.device().index()).devices.size() == 1) {
    return;
  }
  watched_.emplace_back(original.storage(), host.storage().getWeakStorageImpl());
}

void HostRun::escape_kept() {
  for (const auto& [original, alias] : watched_) {
    if (!alias.expired()) escape(*original.unsafeGetStorageImpl());
  }
  watched_.clear();
}

// A device among the arguments is the device of the results.
void HostRun::convert_device(IValue& value) {
  if (value.toDevice().is_xpu()) {
    value = c10::Device(c10::DeviceType::CPU);
  } else {
    is_asked_elsewhere_ = true;
  }
}

void HostRun::convert_arguments(std::optional<CopyAudit>& audit) {
  for (const int i : record_.devices) {
    if (argument(i).isDevice()) convert_device(argument(i));
  }
  for (size_t i = 0; i < record_.arguments; ++i) {
    IValue& value = argument(i);
    if (value.isTensor() || value.isList()) {
      value = with_tensors(
          std::move(value),
          [&](at::Tensor t) { return to_host(std::move(t), i, audit); }, false);
    } else if (value.isStorage()) {
      const c10::Storage storage = value.toStorage();
      value = call_->to_other(storage, may_write(i, storage.device()));
    } else if (static_cast<int>(i) == record_.pin_memory) {
      TORCH_CHECK(value.isNone() || !value.toBool() || is_asked_elsewhere_,
                  record_.name,
                  ": only dense CPU tensors can be pinned, not xpu tensors");
    }
  }
}

// Results that were requested on another device stay there. A result that aliases an
// argument is cloned.
void HostRun::own_results() {
  for (size_t i = stack_->size() - record_.returns; i < stack_->size(); ++i) {
    (*stack_)[i] = with_tensors(
        std::move((*stack_)[i]),
        [&](at::Tensor result) {
          const bool is_argument = std::ranges::any_of(hosts_, [&](const auto& host) {
            return result.defined() && host.has_storage() && result.has_storage() &&
                   result.is_alias_of(host);
          });
          return is_argument ? result.clone() : result;
        },
        true);
  }
  hosts_.clear();
}

// Raises if the op returned another tensor than its written argument: some quantized
// kernels with out= leave `out` unchanged.
void HostRun::check_written() const {
  if (C10_LIKELY(special_written_.empty())) return;
  for (size_t i = stack_->size() - record_.returns; i < stack_->size(); ++i) {
    if (!(*stack_)[i].isTensor()) continue;
    const at::Tensor& result = (*stack_)[i].toTensor();
    TORCH_CHECK_NOT_IMPLEMENTED(
        std::ranges::any_of(special_written_,
                            [&](const at::Tensor& t) { return t.is_same(result); }),
        record_.name,
        " does not write to its argument: PyTorch's CPU kernel, which "
        "computes it for xpu, returns another tensor. Use the op without out=");
  }
}

void HostRun::convert_results() {
  const size_t first = stack_->size() - record_.returns;
  for (size_t i = 0; i < record_.returns; ++i) {
    IValue& value = (*stack_)[first + i];
    if (!value.isTensor() && !value.isList()) continue;
    if (record_.on_host[i]) {
      value = value.toTensor().clone();
      continue;
    }
    value = with_tensors(
        std::move(value),
        [&](at::Tensor t) {
          TORCH_CHECK_NOT_IMPLEMENTED(
              !t.is_mkldnn(),
              "xpu tensors have no mkldnn layout, which the op's result has on the "
              "CPU. Move its operands to the CPU first: tensor.cpu()");
          return call_->to_own(std::move(t));
        },
        true);
  }
}

}  // namespace xpurt

#include "distributed/host_forms.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/view_as_real.h>

#include <algorithm>

#include "device/device_scope.h"
#include "memory/replica/replica.h"
#include "native/alias.h"
#include "stream/capture.h"

namespace xpurt {
namespace {

bool has_type_of_gloo(const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case c10::ScalarType::Float:
    case c10::ScalarType::Double:
    case c10::ScalarType::Half:
    case c10::ScalarType::BFloat16:
    case c10::ScalarType::Char:
    case c10::ScalarType::Byte:
    case c10::ScalarType::Int:
    case c10::ScalarType::Long:
      return true;
    default:
      return false;
  }
}

bool is_plain_memory(const at::Tensor& tensor) {
  return tensor.is_contiguous() && !tensor.is_conj() && !tensor.is_neg();
}

at::Tensor contiguous_like(const at::Tensor& tensor) {
  return at::empty(tensor.sizes(), tensor.options());
}

}  // namespace

HostForms::Form& HostForms::form_of(const at::Tensor& tensor) {
  const auto found = std::ranges::find_if(
      forms_, [&](const Form& each) { return each.original.is_same(tensor); });
  if (found != forms_.end()) return *found;
  forms_.push_back({.original = tensor, .read = false, .written = false});
  return forms_.back();
}

const HostForms::Form& HostForms::known(const at::Tensor& tensor) const {
  const auto found = std::ranges::find_if(
      forms_, [&](const Form& each) { return each.original.is_same(tensor); });
  TORCH_INTERNAL_ASSERT(found != forms_.end());
  return *found;
}

void HostForms::take(const std::vector<at::Tensor>& read,
                     const std::vector<at::Tensor>& written) {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  for (const at::Tensor& each : read) form_of(each).read = true;
  for (const at::Tensor& each : written) form_of(each).written = true;
  for (Form& each : forms_) take(each);
  for (const c10::Device& device : devices_) {
    Stream& stream = current_stream(device.index());
    if (stream.query()) continue;
    before_.emplace_back(/*timed=*/false);
    before_.back().record(stream);
  }
}

void HostForms::take(Form& form) {
  const at::Tensor& tensor = form.original;
  TORCH_CHECK_NOT_IMPLEMENTED(
      elements_ == Elements::copied || has_type_of_gloo(tensor) ||
          (elements_ == Elements::summed && tensor.is_complex()),
      "gloo has no such reduction of ", tensor.scalar_type(),
      " tensors. Convert them, or gather them and reduce the result.");
  if (!tensor.is_xpu()) {
    TORCH_CHECK_VALUE(tensor.is_cpu(), "a collective of xpu tensors got one on ",
                      tensor.device(), ". Give it tensors of one device.");
    form.alias = tensor;
    const bool is_usable =
        !is_plain(tensor) || (is_plain_memory(tensor) && !needs_own_memory(form));
    if (is_usable) form.host = tensor;
    return;
  }
  const c10::Device device = tensor.device();
  if (std::ranges::find(devices_, device) == devices_.end()) {
    if (is_capturing(device.index())) {
      refuse_in_capture("a collective", "a graph holds the work of one device.");
    }
    devices_.push_back(device);
  }
  if (!is_plain(tensor)) {
    take_sparse(form);
  } else {
    host_reads(device.index()) ? take_alias(form) : take_staged(form);
  }
}

void HostForms::take_alias(Form& form) {
  const c10::TensorImpl* impl = form.original.unsafeGetTensorImpl();
  c10::StorageImpl* storage = impl->unsafe_storage().unsafeGetStorageImpl();
  if (form.written) {
    // A copy-on-write storage gets bytes of its own.
    if (storage->has_materializer()) storage->mutable_data_ptr();
    writes_.begin(*impl);
  }
  bring_home(*storage, form.written ? Access::read_write : Access::read);
  form.alias = alias_of(form.original);
  if (is_plain_memory(form.alias) && !needs_own_memory(form)) form.host = form.alias;
}

void HostForms::take_staged(Form& form) {
  const DeviceScope scope(form.original.device().index());
  form.staged = true;
  form.host = at::empty(form.original.sizes(),
                        form.original.options().device(at::kCPU).pinned_memory(true));
  if (form.read) form.host.copy_(form.original, /*non_blocking=*/true);
}

// A sum of sparse tensors has other indices, so it is copied as a whole.
void HostForms::take_sparse(Form& form) {
  TORCH_CHECK_TYPE(
      form.original.layout() == c10::kSparse,
      "a collective takes dense and sparse COO xpu tensors, not the layout ",
      form.original.layout(), ". Give it tensor.to_dense().");
  form.staged = true;
  form.host = form.original.to(at::kCPU);
}

bool HostForms::is_ready() const {
  return std::ranges::all_of(before_, [](const Event& each) { return each.query(); });
}

bool HostForms::is_staged() const {
  return std::ranges::any_of(forms_, &Form::staged);
}

bool HostForms::has_queued_results() const {
  bool has_results = false;
  for (const Form& each : forms_) {
    if (!each.written) continue;
    // A copy into another layout waits on the host.
    if (!each.staged || each.original.is_sparse()) return false;
    if (!is_plain_memory(each.original)) return false;
    has_results = true;
  }
  return has_results;
}

void HostForms::fill() {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  for (const Event& each : before_) each.synchronize();
  before_.clear();
  for (Form& form : forms_) {
    if (form.host.defined()) continue;
    form.host = contiguous_like(form.alias);
    if (form.read) form.host.copy_(form.alias);
  }
}

std::vector<c10::weak_intrusive_ptr<c10::StorageImpl>> HostForms::deliver() {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  std::vector<c10::weak_intrusive_ptr<c10::StorageImpl>> written;
  for (Form& form : forms_) {
    if (!form.written || form.host.is_same(form.original)) continue;
    if (form.original.is_sparse()) {
      form.original.copy_(form.host.to(form.original.device()));
      current_stream(form.original.device().index()).wait();
    } else if (form.staged) {
      form.original.copy_(form.host, /*non_blocking=*/true);
      written.push_back(form.original.storage().getWeakStorageImpl());
    } else if (!form.host.is_same(form.alias)) {
      form.alias.copy_(form.host);
    }
  }
  return written;
}

at::Tensor HostForms::for_backend(const at::Tensor& host) const {
  if (has_type_of_gloo(host)) return host;
  if (elements_ == Elements::copied) return host.unsqueeze(-1).view(at::kByte);
  if (elements_ == Elements::summed && host.is_complex()) return at::view_as_real(host);
  return host;
}

at::Tensor HostForms::operator()(const at::Tensor& tensor) const {
  return for_backend(known(tensor).host);
}

std::vector<at::Tensor> HostForms::operator()(
    const std::vector<at::Tensor>& tensors) const {
  std::vector<at::Tensor> hosts;
  hosts.reserve(tensors.size());
  for (const at::Tensor& each : tensors) hosts.push_back((*this)(each));
  return hosts;
}

std::vector<std::vector<at::Tensor>> HostForms::operator()(
    const std::vector<std::vector<at::Tensor>>& lists) const {
  std::vector<std::vector<at::Tensor>> hosts;
  hosts.reserve(lists.size());
  for (const auto& each : lists) hosts.push_back((*this)(each));
  return hosts;
}

std::vector<at::Tensor> HostForms::all_read() const {
  std::vector<at::Tensor> hosts;
  for (const Form& each : forms_) {
    if (each.read) hosts.push_back(each.host);
  }
  return hosts;
}

std::vector<at::Tensor> HostForms::all_written() const {
  std::vector<at::Tensor> hosts;
  for (const Form& each : forms_) {
    if (each.written) hosts.push_back(each.host);
  }
  return hosts;
}

}  // namespace xpurt

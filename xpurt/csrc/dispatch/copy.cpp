#include "dispatch/copy.h"

#include <ATen/ExpandUtils.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/_local_scalar_dense.h>
#include <ATen/ops/_neg_view.h>
#include <ATen/ops/conj_physical.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/neg.h>
#include <ATen/ops/view_as_real.h>
#include <torch/library.h>

#include "device/device.h"
#include "device/device_scope.h"
#include "dispatch/dispatch.h"
#include "dispatch/host_memcpy.h"
#include "dispatch/unboxed/copy.h"
#include "host/host_waits.h"
#include "memory/cpu_allocator.h"
#include "memory/pinned.h"
#include "memory/replica/device_override.h"
#include "memory/replica/host_writes.h"
#include "memory/replica/replica.h"
#include "native/host_call.h"
#include "native/lazy_copy.h"
#include "op/op_report.h"
#include "schedule/scheduler.h"
#include "stream/capture.h"
#include "stream/captured_storages.h"

namespace xpurt {
namespace {

// One call of copy_, and the record that counts it.
struct Copy {
  OpRecord& record;
  c10::DispatchKeySet keys;
  at::Tensor self;
  at::Tensor source;
  bool non_blocking;
  c10::DeviceIndex index;

  void count(Tier tier, uint64_t begin, uint64_t bytes = 0) const {
    count_op(record, tier, ordinal(index).home_device().id, ticks_now() - begin, bytes);
  }
};

// Whether the source's bytes are where a memcpy would run: on the device of a shard,
// else at home. If they are elsewhere, it costs less to copy them there. A preference
// for one of several devices decides before that.
bool stays_here(const Copy& copy) {
  if (is_on_shard()) return true;
  const Ordinal& on = ordinal(copy.index);
  return (on.devices.size() == 1 || !has_preference(on)) &&
         is_valid_on(*copy.source.storage().unsafeGetStorageImpl(), on.home);
}

// Submits one memcpy to the stream, after earlier work. Does not wait.
void copy_on_queue(const Copy& copy) {
  const uint64_t begin = ticks_now();
  const size_t bytes = copy.self.nbytes();
  Stream& stream = current_stream(copy.index);
  const int of_shard = shard_position();
  Operands operands(stream, of_shard >= 0 ? of_shard : stream.ordinal().home);
  operands.add(copy.self, Access::write);
  operands.add(copy.source, Access::read);
  operands.resolve();
  operands.submitted(operands.queue()->memcpy(operands[0], operands[1], bytes),
                     DeviceWork::copy(bytes));
  copy.count(Tier::sycl, begin);
}

at::Tensor on_cpu_like(const at::Tensor& tensor) {
  return at::empty_strided(tensor.sizes(), tensor.strides(),
                           tensor.options().device(c10::kCPU));
}

// Waits for a copy from or to `host`, unless it is non-blocking and `host` is pinned
// memory, which is kept until the copy is done. Other memory may be freed or written
// before the copy is done.
void finish_copy(const at::Tensor& host, bool non_blocking, Stream& stream,
                 const Operands& operands) {
  if (non_blocking && record_pinned_use(host.storage().data_ptr(), stream.id())) return;
  stream.wait_for(operands.uses());
}

// Copies a dense xpu tensor's bytes to a CPU tensor of the same layout.
void download(const at::Tensor& source, const at::Tensor& host, bool non_blocking) {
  if (source.numel() == 0) return;
  Stream& stream = current_stream(source.device().index());
  void* to = host.mutable_data_ptr();
  Operands operands(stream, stream.ordinal().home);
  operands.add(source, Access::read);
  operands.resolve();
  operands.submitted(operands.queue()->memcpy(to, operands[0], source.nbytes()),
                     DeviceWork::copy(source.nbytes()));
  finish_copy(host, non_blocking, stream, operands);
}

at::Tensor downloaded(const at::Tensor& source) {
  at::Tensor host = on_cpu_like(source);
  download(source, host, /*non_blocking=*/false);
  return host;
}

void upload(const at::Tensor& self, const at::Tensor& host, bool non_blocking) {
  if (self.numel() == 0) return;
  Stream& stream = current_stream(self.device().index());
  const void* from = host.const_data_ptr();
  Operands operands(stream, stream.ordinal().home);
  operands.add(self, Access::write);
  operands.resolve();
  operands.submitted(operands.queue()->memcpy(operands[0], from, self.nbytes()),
                     DeviceWork::copy(self.nbytes()));
  finish_copy(host, non_blocking, stream, operands);
}

// Copies through dense tensors on the host, if the host cannot read the memory of one
// of the devices. False if an xpu tensor is not dense.
bool copy_through_host(const Copy& copy) {
  const bool from_xpu = copy.source.is_xpu();
  const bool to_xpu = copy.self.is_xpu();
  if ((from_xpu && !is_dense(copy.source)) || (to_xpu && !is_dense(copy.self))) {
    return false;
  }
  const uint64_t begin = ticks_now();
  if (!to_xpu && same_dense_layout(copy.self, copy.source)) {
    download(copy.source, copy.self, copy.non_blocking);
  } else if (!to_xpu) {
    copy.self.copy_(downloaded(copy.source));
  } else if (const at::Tensor host = from_xpu ? downloaded(copy.source) : copy.source;
             same_dense_layout(copy.self, host)) {
    upload(copy.self, host, copy.non_blocking);
  } else {
    const at::Tensor converted = on_cpu_like(copy.self);
    converted.copy_(host);
    upload(copy.self, converted, /*non_blocking=*/false);
  }
  copy.count(Tier::sycl, begin);
  return true;
}

// PyTorch's copy_ on host forms of both tensors: any dtypes, strides, and conjugate or
// negative bits.
void copy_on_host(const Copy& copy) {
  const uint64_t begin = ticks_now();
  HostCall call(copy.index);
  call.announce(copy.self, false);
  call.announce(copy.source, false);
  const at::Tensor self = call.to_other(copy.self, true);
  const at::Tensor source = call.to_other(copy.source, false);
  call.wait();
  self.copy_(source);
  call.finish_arguments();
  copy.count(call.copies() ? Tier::copy : Tier::native, begin, call.bytes_copied());
}

// Copies complex32 to or from another type, or to other strides, by its real and
// imaginary parts, whose type has kernels. False for any other copy.
bool copy_half_parts(const Copy& copy) {
  const auto is_half = [](const at::Tensor& tensor) {
    return tensor.scalar_type() == c10::ScalarType::ComplexHalf;
  };
  const auto is_alike = [](const at::Tensor& tensor) {
    return is_plain(tensor) && tensor.layout() == c10::kStrided && !tensor.is_conj() &&
           !tensor.is_neg() && !tensor._is_zerotensor();
  };
  const at::Tensor& self = copy.self;
  const at::Tensor& source = copy.source;
  // PyTorch's kernel warns that the imaginary part is dropped.
  if (!(is_half(self) || is_half(source)) || !self.is_complex()) return false;
  if (!is_alike(self) || !is_alike(source)) return false;
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  const at::Tensor parts = at::view_as_real(self);
  if (source.is_complex()) {
    parts.copy_(at::view_as_real(source), copy.non_blocking);
  } else {
    parts.select(-1, 0).copy_(source, copy.non_blocking);
    parts.select(-1, 1).zero_();
  }
  return true;
}

void copy_within_ordinal(const Copy& copy) {
  const bool lazy = is_capturing(copy.index) && copy.self.has_storage() &&
                    copy.self.storage().unsafeGetStorageImpl()->has_materializer();
  const bool dense = same_dense_layout(copy.self, copy.source) &&
                     !copy.self.is_alias_of(copy.source) && !lazy;
  // The host never runs captured work.
  const bool idle = current_stream(copy.index).idle() && !is_capturing(copy.index);
  const bool by_host = idle && host_computes(copy.index) && shard_position() < 0;
  if (dense && !by_host && stays_here(copy)) {
    copy_on_queue(copy);
  } else if (copy_half_parts(copy)) {
    return;
  } else if (by_host) {
    at::Tensor self = copy.self;
    copy_unboxed(copy.keys, self, copy.source);
  } else {
    torch::jit::Stack stack{copy.self, copy.source, false};
    run_op_at(copy.record, copy.index, copy.keys, &stack);
  }
}

// Captures a copy from or to pinned memory, which the graph then keeps. Each replay
// copies the bytes that are there at that time. Kernels do any conversion of elements.
void capture_pinned(const Copy& copy) {
  const uint64_t begin = ticks_now();
  const bool uploads = copy.self.is_xpu();
  const at::Tensor& host = uploads ? copy.source : copy.self;
  const at::Tensor& there = uploads ? copy.self : copy.source;
  keep_for_capture(host.storage());
  const bool plain = same_dense_layout(there, host);
  const at::Tensor like_host =
      plain ? there
            : at::empty_strided(
                  host.sizes(), host.strides(),
                  host.options().device(there.device()).pinned_memory(std::nullopt));
  if (uploads) {
    upload(like_host, host, /*non_blocking=*/true);
    if (!plain) there.copy_(like_host);
  } else {
    if (!plain) like_host.copy_(there);
    download(like_host, host, /*non_blocking=*/true);
  }
  copy.count(Tier::sycl, begin);
}

void copy_in_capture(const Copy& copy) {
  const at::Tensor& host = copy.self.is_xpu() ? copy.source : copy.self;
  const std::string what = copy.record.name + " from " +
                           c10::str(copy.source.device()) + " to " +
                           c10::str(copy.self.device());
  if (!host.is_cpu()) refuse_in_capture(what, "a graph holds the work of one device.");
  if (!copy.non_blocking || !is_dense(host) ||
      !is_pinned(host.storage().data_ptr().get())) {
    refuse_in_capture(what,
                      "the graph keeps pinned memory alone for its replays, and nobody "
                      "waits in a capture: pin the dense CPU tensor, and copy with "
                      "non_blocking=True.");
  }
  capture_pinned(copy);
}

void copy_between(const Copy& copy) {
  for (const at::Tensor& each : {copy.self, copy.source}) {
    if (!each.is_xpu() || !is_capturing(each.device().index())) continue;
    return copy_in_capture(copy);
  }
  const auto unreadable = [](const at::Tensor& tensor) {
    return tensor.is_xpu() && !host_reads(tensor.device().index());
  };
  if ((unreadable(copy.self) || unreadable(copy.source)) && copy_through_host(copy)) {
    return;
  }
  copy_on_host(copy);
}

// The copy of .to("xpu") and .cpu() if the host reads the device's memory: the bytes of
// a dense tensor to one of the same layout, in as few steps as clone() takes. False for
// any other copy.
bool copy_plainly(OpRecord& record, const at::Tensor& self, const at::Tensor& source) {
  const at::Tensor& there = self.is_xpu() ? self : source;
  const at::Tensor& here = self.is_xpu() ? source : self;
  const c10::DeviceIndex index = there.device().index();
  if (!here.is_cpu() || !host_reads(index) || !same_dense_layout(self, source) ||
      capture_is_underway()) {
    return false;
  }
  const uint64_t begin = ticks_now();
  const size_t bytes = self.nbytes();
  auto* to = static_cast<char*>(self.mutable_data_ptr());
  Uses pending;
  HostWrites writes;
  if (self.is_xpu()) writes.begin(*self.unsafeGetTensorImpl());
  bring_home(*there.storage().unsafeGetStorageImpl(),
             self.is_xpu() ? Access::read_write : Access::read, &pending);
  Stream& stream = current_stream(index);
  if (!stream.idle() || !pending.empty()) stream.wait_for(pending);
  const auto* from = static_cast<const char*>(source.const_data_ptr());
  if (to < from + bytes && from < to + bytes) return false;  // shared memory
  copy_bytes(to, from, bytes);
  count_op(record, Tier::native, ordinal(index).home_device().id, ticks_now() - begin,
           0);
  return true;
}

// Whether both are views of the same elements, even if each overlaps itself.
bool is_same_data(const at::Tensor& a, const at::Tensor& b) {
  return a.is_same(b) ||
         (a.layout() == c10::kStrided && b.layout() == c10::kStrided &&
          a.is_alias_of(b) && a.storage_offset() == b.storage_offset() &&
          a.sizes() == b.sizes() && a.strides() == b.strides() &&
          a.scalar_type() == b.scalar_type() && a.is_conj() == b.is_conj() &&
          a.is_neg() == b.is_neg());
}

// Resolves conjugate and negative views on the device: kernels do not support them, and
// the host cannot read the memory. Returns whether there were any.
bool copy_resolved(const at::Tensor& self, const at::Tensor& source) {
  if (self.is_conj()) {
    self.conj().copy_(source.conj());
  } else if (self.is_neg()) {
    at::_neg_view(self).copy_(at::neg(source.to(self.scalar_type())));
  } else if (source.is_conj()) {
    self.copy_(at::conj_physical(source.conj()));
  } else if (source.is_neg()) {
    self.copy_(at::neg(at::_neg_view(source)));
  } else {
    return false;
  }
  return true;
}

// aten::copy_. On an idle stream, the host copies a few bytes at once.
at::Tensor& copy_(c10::DispatchKeySet keys, at::Tensor& self, const at::Tensor& source,
                  bool non_blocking) {
  static OpRecord& record =
      op_record(c10::Dispatcher::singleton().findSchemaOrThrow("aten::copy_", ""));
  TORCH_CHECK(self.defined(), "self is undefined");
  TORCH_CHECK(source.defined(), "src is undefined");
  const c10::DeviceIndex index = (self.is_xpu() ? self : source).device().index();
  if (is_same_data(self, source)) return self;
  TORCH_CHECK(!self._is_zerotensor(),
              "aten::copy_: self is zeros without memory, which "
              "can't be written to; clone() makes a tensor of them");
  if (source._is_zerotensor()) {
    TORCH_CHECK(at::is_expandable_to(source.sizes(), self.sizes()),
                "aten::copy_: src of ", source.sizes(), " can't be expanded to self's ",
                self.sizes());
    return self.zero_();
  }
  const bool within = self.device() == source.device();
  if (within && !host_reads(index) && copy_resolved(self, source)) return self;
  if (within && current_stream(index).idle() && host_memcpy(record, self, source)) {
    return self;
  }
  if (!self.is_xpu() && !non_blocking) count_host_wait();
  if (!within && copy_plainly(record, self, source)) return self;
  const Copy copy{record, keys, self, source, non_blocking, index};
  const DeviceScope scope(index);
  within ? copy_within_ordinal(copy) : copy_between(copy);
  return self;
}

// item(). If the host cannot read the memory, one element is copied.
void item_boxed(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                torch::jit::Stack* stack) {
  static OpRecord& record = op_record(op);
  count_host_wait();
  const at::Tensor self = torch::jit::peek(*stack, 0, 1).toTensor();
  const c10::DeviceIndex index = self.device().index();
  if (host_reads(index) || !is_dense(self)) return run_op(record, keys, stack);
  const DeviceScope scope(index);
  const uint64_t begin = ticks_now();
  const at::Scalar value = at::_local_scalar_dense(downloaded(self));
  torch::jit::drop(*stack, 1);
  torch::jit::push(*stack, value);
  count_op(record, Tier::sycl, ordinal(index).home_device().id, ticks_now() - begin, 0);
}

TORCH_LIBRARY_IMPL(aten, XPU, m) {
  m.impl("copy_", TORCH_FN(copy_));
  m.impl("_local_scalar_dense",
         torch::CppFunction::makeFromBoxedFunction<&item_boxed>());
}

}  // namespace

bool is_dense(const at::Tensor& tensor) {
  const bool lazy = tensor.is_conj() || tensor.is_neg() || tensor._is_zerotensor();
  return is_plain(tensor) && tensor.layout() == c10::kStrided && !lazy &&
         tensor.is_non_overlapping_and_dense();
}

bool same_dense_layout(const at::Tensor& a, const at::Tensor& b) {
  return a.scalar_type() == b.scalar_type() && is_dense(a) && is_dense(b) &&
         a.sizes() == b.sizes() && a.strides() == b.strides();
}

}  // namespace xpurt

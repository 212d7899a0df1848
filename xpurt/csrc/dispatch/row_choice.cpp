#include "dispatch/row_choice.h"

#include "host/host_memory.h"
#include "memory/replica/device_override.h"
#include "native/alias.h"
#include "op/stack_tensors.h"
#include "program/program_build.h"
#include "schedule/explain.h"
#include "schedule/kernel_refusal.h"
#include "schedule/partition.h"
#include "schedule/split.h"
#include "schedule/stream_clock.h"
#include "stream/capture.h"

namespace xpurt {
namespace {

thread_local bool is_sampling = false;

void inspect_dims(const OpRecord& record, const c10::IValue& tensor,
                  const c10::IValue& dims, CallSignature* signature) {
  if (!tensor.isTensor() || !tensor.toTensor().defined()) return;
  const c10::TensorImpl& impl = *tensor.toTensor().unsafeGetTensorImpl();
  if (dims.isInt()) signature->record_dims(impl, dims.toInt());
  if (dims.isBool() && dims.toBool()) signature->record_channels(impl);
  if (!dims.isIntList()) return;
  if (record.dims_as_shape) {
    signature->record_line(impl, dims.toIntList().size());
  } else {
    signature->record_dims(impl, dims.toIntVector());
  }
}

CallSignature inspect_call(const OpRecord& record, const torch::jit::Stack& stack) {
  CallSignature signature;
  const size_t first = stack.size() - record.arguments;
  if (record.dims >= 0) {
    inspect_dims(record, stack[first], stack[first + record.dims], &signature);
  }
  for (size_t i = first; i < stack.size(); ++i) {
    for_each_tensor(stack[i], [&](const at::Tensor& tensor) {
      if (tensor.defined() && tensor.layout() == c10::kStrided) {
        signature.record(*tensor.unsafeGetTensorImpl());
      }
    });
  }
  return signature;
}

// Below so many elements (see RowPrior) the native kernel is taken without any check:
// it finishes before another kernel could have been launched.
constexpr int64_t kTierFloor = 1024;

// The same for rows that have to compute the amount of work, such as matrix products:
// two matrices of 64 by 64 are multiplied before a kernel could have been launched.
constexpr int64_t kAskingFloor = 4096;

// Chooses the row for the call, or frees the parsed call.
void take_row(const RowKernel& row, RowCall* call, bool taken, RowChoice* choice) {
  if (taken) {
    choice->row = &row;
    choice->call = call;
  } else {
    choice->memory.reset();
  }
}

// Chooses the row for the call, if it can run it.
void take_row_if_it_can(const RowKernel& row, const torch::jit::Stack& stack,
                        RowChoice* choice) {
  RowCall* call = row.parse(stack, choice->memory);
  take_row(row, call, call != nullptr, choice);
}

// Whether the native kernel on the CPU is taken without a comparison of costs.
bool too_small(const PhysicalDevice& home, const RowKernel& row,
               const CallSignature& signature) {
  const int64_t floor = row.prior.by_operands ? kTierFloor : kAskingFloor;
  return signature.elements() <= floor && home.is_cpu;
}

// Chooses by the scheduler, with a decision of its own for the call. `forced`: the
// native kernel is no candidate.
void choose_by_decision(OpRecord& record, const RowKernel& row, c10::DeviceIndex index,
                        const torch::jit::Stack& stack, RowCall* call, int64_t elements,
                        bool forced, RowChoice* choice) {
  Stream& stream = current_stream(index);
  const PhysicalDevice& home = stream.ordinal().home_device();
  const OpCost& cost = call->cost();
  // PyTorch's kernel would compute the whole op at home, so a forced split excludes it.
  const bool native = !forced && home.host_accessible && record.has_cpu_kernel &&
                      !is_split_forced(cost, stream);
  const bool small = too_small(home, row, choice->signature);
  const bool at_home =
      !native || (!small && !is_refused(record, home.id, choice->signature.type()));
  const bool learns = !is_sampling && learning_mode() == LearningMode::learns;
  const double build_us =
      row.prior.build_us >= 0 ? row.prior.build_us : expected_build_us();
  choice->decision = decide({record, row, choice->signature, elements, cost, native,
                             at_home, learns, build_us, stack},
                            stream);
  take_row(row, call, !choice->decision->native, choice);
}

// Chooses on one device whose memory the host reads. `quick`: the cached choice, if it
// was looked up.
void choose_on_one(OpRecord& record, const RowKernel& row, c10::DeviceIndex index,
                   const torch::jit::Stack& stack, const QuickChoice* quick,
                   RowChoice* choice) {
  if (too_small(ordinal(index).home_device(), row, choice->signature)) return;
  int64_t elements = choice->signature.elements();
  QuickChoice known;
  if (row.prior.by_operands) {
    if (quick != nullptr) {
      known = *quick;
    } else if (!is_explaining()) {
      known = quick_choice_on_one(record, index, choice->signature, elements);
    }
    known.take();
    if (known.tier == QuickTier::native) return;
  }
  RowCall* call = row.parse(stack, choice->memory);
  if (call == nullptr) {
    if (known.tier == QuickTier::undecided && row.prior.by_operands) {
      postpone_sample(record, index, choice->signature, elements);
    }
    return;
  }
  if (!row.prior.by_operands) {
    elements = std::max<int64_t>(call->cost().elements, 1);
    if (!is_explaining()) {
      known = quick_choice_on_one(record, index, choice->signature, elements);
    }
    known.take();
  }
  if (known.tier == QuickTier::undecided) {
    choose_by_decision(record, row, index, stack, call, elements, false, choice);
  } else {
    take_row(row, call, known.tier == QuickTier::kernel, choice);
  }
}

bool are_at(size_t position, const OpRecord& record, const torch::jit::Stack& stack) {
  bool there = true;
  for (size_t i = stack.size() - record.arguments; i < stack.size(); ++i) {
    for_each_tensor(stack[i], [&](const at::Tensor& tensor) {
      if (tensor.defined() && tensor.is_xpu() && tensor.has_storage()) {
        there &= is_valid_on(*tensor.storage().unsafeGetStorageImpl(), position);
      }
    });
  }
  return there;
}

// Whether the native kernel at home is taken without a comparison of costs. For tiny
// operands it ends before another device would have begun; for others the cached
// decision is native. False if operands have to be copied home.
bool stays_native(const OpRecord& record, const RowKernel& row, c10::DeviceIndex index,
                  const CallSignature& signature, const torch::jit::Stack& stack) {
  const Ordinal& on = ordinal(index);
  if (!on.home_device().host_accessible || !record.has_cpu_kernel ||
      has_preference(on) || !are_at(on.home, record, stack)) {
    return false;
  }
  // The last check counts the call, so no other check may follow it.
  return too_small(on.home_device(), row, signature) ||
         (row.prior.by_operands && !is_explaining() && current_stream(index).idle() &&
          is_cached_native(record, index, on.devices.size(), signature));
}

// Chooses for a part of a shard: see Note [Device overrides].
void choose_on_shard(OpRecord& record, const RowKernel& row,
                     const PhysicalDevice& device, const torch::jit::Stack& stack,
                     RowChoice* choice) {
  choice->signature = inspect_call(record, stack);
  if (!is_refused(record, device.id, choice->signature.type())) {
    take_row_if_it_can(row, stack, choice);
  }
}

}  // namespace

bool keeps_order_of_writes(const OpRecord& record, const torch::jit::Stack& stack) {
  if (C10_LIKELY(!is_deterministic()) || !record.writes_in_any_order) return false;
  return record.accumulate < 0 ||
         !stack[stack.size() - record.arguments + record.accumulate].toBool();
}

void choose_row(OpRecord& record, c10::DeviceIndex index,
                const torch::jit::Stack& stack, const InspectedCall* inspected,
                RowChoice* choice) {
  const RowKernel* row = record.row.load(std::memory_order_acquire);
  if (C10_LIKELY(row == nullptr)) return;
  if (C10_UNLIKELY(keeps_order_of_writes(record, stack))) return;
  const KernelPolicy policy =
      is_capturing(index) ? KernelPolicy::sycl : kernel_policy();
  // An op of xpurt's own without a CPU kernel: only the row computes it.
  const bool alone = !record.is_aten_op && !record.has_cpu_kernel;
  if (policy == KernelPolicy::native && !alone) return;
  const Ordinal& on = ordinal(index);
  if (C10_UNLIKELY(is_on_shard())) {
    choose_on_shard(record, *row, *on.devices[shard_position()], stack, choice);
    return;
  }
  const PhysicalDevice& home = on.home_device();
  const bool forced = policy == KernelPolicy::sycl || alone;
  const bool several = on.devices.size() > 1 && !row->prior.in_parts;
  if (forced && !several) {
    take_row_if_it_can(*row, stack, choice);
    return;
  }
  choice->signature =
      inspected != nullptr ? inspected->signature : inspect_call(record, stack);
  if (C10_UNLIKELY(on.overflows) && !has_preference()) {
    const int id = on.working_device().id;
    if (alone || !is_refused(record, id, choice->signature.type())) {
      take_row_if_it_can(*row, stack, choice);
    }
    return;
  }
  const bool asked = inspected != nullptr && inspected->quick.has_value();
  if (!several && home.host_accessible && on.devices.size() == 1) {
    choose_on_one(record, *row, index, stack, asked ? &*inspected->quick : nullptr,
                  choice);
    return;
  }
  if (!forced && is_refused(record, home.id, choice->signature.type())) return;
  if (several) {
    // If the unboxed op has checked the call at home, it has already ruled this out.
    if (!forced && !asked &&
        stays_native(record, *row, index, choice->signature, stack)) {
      return;
    }
    if (RowCall* call = row->parse(stack, choice->memory)) {
      const int64_t elements = std::max<int64_t>(call->cost().elements, 1);
      choose_by_decision(record, *row, index, stack, call, elements, forced, choice);
    }
  } else if (!home.host_accessible) {
    take_row_if_it_can(*row, stack, choice);
  }
}

std::optional<QuickChoice> quick_choice(const OpRecord& record, const Ordinal& on,
                                        c10::DeviceIndex index,
                                        const CallSignature& signature) {
  constexpr QuickChoice native{QuickTier::native};
  const PhysicalDevice& home = on.home_device();
  if (!home.host_accessible || is_capturing(index) || is_explaining()) {
    return std::nullopt;
  }
  const RowKernel* row = record.row.load(std::memory_order_acquire);
  if (row == nullptr) return native;
  const KernelPolicy policy = kernel_policy();
  if (policy == KernelPolicy::native) return native;
  if (policy != KernelPolicy::automatic || on.devices.size() != 1) return std::nullopt;
  if (too_small(home, *row, signature)) return native;
  if (!row->prior.by_operands) return std::nullopt;
  return quick_choice_on_one(record, index, signature, signature.elements());
}

bool goes_native(const OpRecord& record, c10::DeviceIndex index,
                 const CallSignature& signature) {
  const auto quick = quick_choice(record, ordinal(index), index, signature);
  if (!quick || quick->tier != QuickTier::native) return false;
  quick->take();
  return true;
}

std::optional<bool> goes_native_at_home(const OpRecord& record, c10::DeviceIndex index,
                                        const CallSignature& signature) {
  const Ordinal& on = ordinal(index);
  const PhysicalDevice& home = on.home_device();
  if (is_explaining() || has_preference(on) || is_on_shard() || !home.host_accessible ||
      is_capturing(index) || kernel_policy() != KernelPolicy::automatic) {
    return std::nullopt;
  }
  const RowKernel* row = record.row.load(std::memory_order_acquire);
  if (row == nullptr || too_small(home, *row, signature)) return true;
  return row->prior.by_operands && current_stream(index).idle() &&
         is_cached_native(record, index, on.devices.size(), signature);
}

SampleTimer::SampleTimer(c10::DeviceIndex index, const RowRun& run)
    : run_(run), stream_(current_stream(index)) {
  const double before = now_us();
  stream_.wait();
  is_sampling = true;
  pages_ = pages_given();
  begin_us_ = now_us();
  // On one device a native call would have waited anyway, so its wait is no stall.
  const bool waits_anyway =
      run.decision->native && stream_.ordinal().devices.size() == 1;
  if (!waits_anyway) waited_us_ = begin_us_ - before;
}

SampleTimer::~SampleTimer() {
  is_sampling = false;
}

void SampleTimer::done() {
  const bool divided = !run_.fractions.empty();
  const double submitted_us = now_us();
  std::vector<double> ends_us;
  if (divided) {
    ends_us = stream_.wait_for_each(&now_us);
  } else {
    stream_.wait();
    pass_time_of(candidate_of(*run_.decision, stream_.ordinal()));
  }
  const double end_us = now_us(), us = end_us - begin_us_;
  if (pages_given() > pages_ && discard_sample(*run_.decision)) return;
  // The only device has worked during the wait before the call. What is lost is the
  // time until it has as much work again, which is about that of the call. Of several
  // devices some were idle.
  const bool several = stream_.ordinal().devices.size() > 1;
  const double delay_us = several ? waited_us_ : std::min(waited_us_, us);
  const double stall_us = delay_us + end_us - submitted_us;
  if (divided) {
    record_shards(run_, stream_, begin_us_, ends_us, stall_us);
  } else {
    record_call_time(*run_.decision, stream_, us, stall_us);
  }
}

}  // namespace xpurt

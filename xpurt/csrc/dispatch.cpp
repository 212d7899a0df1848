#include "dispatch.h"

#include <ATen/core/List.h>
#include <ATen/core/ivalue.h>
#include <c10/util/ScopeExit.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "alias.h"
#include "candidates.h"
#include "capture.h"
#include "cpu_allocator.h"
#include "device.h"
#include "device_failure.h"
#include "device_scope.h"
#include "explain.h"
#include "fallback_mode.h"
#include "kernel_refusal.h"
#include "op_report.h"
#include "operands.h"
#include "program.h"
#include "random.h"
#include "row_choice.h"
#include "scheduler.h"
#include "stack_tensors.h"
#include "unsafe_copies.h"
#include "wider_types.h"

namespace xpurt {
namespace {

using c10::IValue;

thread_local int noted_device = -1;

// `value` with `change` applied to the tensors in it; a list is copied only where
// something in it changes, and only if `in_place` is false.
template <typename Change>
IValue with_tensors(IValue value, const Change& change, bool in_place) {
  if (value.isTensor()) return change(std::move(value).toTensor());
  if (!value.isList()) return value;
  const auto elements = value.toListRef();
  if (elements.empty()) return value;
  auto list = value.toList();
  if (!in_place) list = list.copy();
  for (size_t i = 0; i < elements.size(); ++i) {
    const IValue& element = elements[i];
    if (!element.isTensor() && !element.isList() && !element.isNone()) break;
    list.set(i, with_tensors(element, change, in_place));
  }
  return in_place ? value : IValue(std::move(list));
}

class HostRun {
 public:
  HostRun(OpRecord& record, c10::DeviceIndex index, torch::jit::Stack* stack)
      : record_(record), index_(index), stack_(stack) {
    if (call_->copies() || may_cross_devices()) announce();
  }

  bool copies() const { return call_->copies(); }
  uint64_t bytes_copied() const { return bytes_copied_; }

  void run(c10::DispatchKeySet keys) {
    RandomDraw draw(record_, index_, stack_);
    std::optional<CopyAudit> audit;
    if (copies()) audit.emplace(record_, index_);
    convert_arguments(audit);
    call_->wait();
    if (audit) audit->kernel_begins();
    {
      ResultsOnDevice results(!copies() && !is_asked_elsewhere_);
      record_.host_kernel(record_.op, host_keys(keys), stack_);
    }
    check_written();
    if (audit) audit->kernel_ended(*stack_);
    call_->finish_arguments();
    is_asked_elsewhere_ ? own_results() : convert_results();
    bytes_copied_ = call_->bytes_copied();
    call_.reset();
    if (audit) audit->run_ended();
  }

 private:
  IValue& argument(size_t i) { return (*stack_)[first_ + i]; }

  // Whether an operand may be on another ordinal than the results, one that the host
  // can't read.
  bool may_cross_devices() {
    if (record_.mixes_devices) return true;
    for (size_t i = 0; i < record_.arguments; ++i) {
      if (argument(i).isDevice()) return true;
    }
    return false;
  }

  void announce() {
    for (size_t i = 0; i < record_.arguments; ++i) {
      const bool whole = record_.written[i] && record_.may_resize;
      for_each_tensor(argument(i),
                      [&](const at::Tensor& t) { call_->announce(t, whole); });
    }
  }

  // What an op of another library writes its schema may not say, and collectives write
  // when they returned. On an alias that is no harm as long as all others that hold
  // these bytes give them up: replicas, and tensors that share them until they are
  // written. On copies see Note [Ops on copies].
  bool may_write(size_t i, c10::Device device) const {
    if (record_.written[i]) return true;
    return !record_.is_atens && device.is_xpu() && host_reads(device.index());
  }

  at::Tensor to_host(at::Tensor tensor, size_t i, std::optional<CopyAudit>& audit) {
    if (!tensor.defined()) return tensor;
    const bool written =
        is_plain(tensor) ? may_write(i, tensor.device()) : record_.written[i];
    const bool wants_grad = record_.asks_for_grad && tensor.requires_grad();
    at::Tensor host = call_->to_host(tensor, written);
    if (audit) audit->saw_argument(i, tensor, host);
    if (is_asked_elsewhere_) hosts_.push_back(host);
    if (C10_UNLIKELY(written && !is_plain(tensor))) special_written_.push_back(host);
    if (wants_grad) host.set_requires_grad(true);
    return host;
  }

  // A device among the arguments is where the results are to be.
  void convert_device(IValue& value) {
    if (value.toDevice().is_xpu()) {
      value = c10::Device(c10::DeviceType::CPU);
    } else {
      is_asked_elsewhere_ = true;
    }
  }

  void convert_arguments(std::optional<CopyAudit>& audit) {
    for (size_t i = 0; i < record_.arguments; ++i) {
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
        value = call_->to_host(storage, may_write(i, storage.device()));
      } else if (static_cast<int>(i) == record_.pin_memory) {
        TORCH_CHECK(value.isNone() || !value.toBool() || is_asked_elsewhere_,
                    record_.name,
                    ": only dense CPU tensors can be pinned, not xpu tensors");
      }
    }
  }

  // Results that were asked for on another device stay there; none is an argument.
  void own_results() {
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

  // Some quantized kernels with out= return another tensor, and leave `out` as it was.
  void check_written() const {
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

  void convert_results() {
    const size_t first = stack_->size() - record_.returns;
    for (size_t i = 0; i < record_.returns; ++i) {
      IValue& value = (*stack_)[first + i];
      if (!value.isTensor() && !value.isList()) continue;
      if (record_.on_host[i]) {
        value = value.toTensor().clone();
        continue;
      }
      value = with_tensors(
          std::move(value), [&](at::Tensor t) { return call_->to_xpu(std::move(t)); },
          true);
    }
  }

  OpRecord& record_;
  c10::DeviceIndex index_;
  torch::jit::Stack* stack_;
  size_t first_ = stack_->size() - record_.arguments;
  std::optional<HostCall> call_{std::in_place, index_};
  bool is_asked_elsewhere_ = false;  // results go to a device that is no xpu
  std::vector<at::Tensor> hosts_;    // the arguments then
  uint64_t bytes_copied_ = 0;
  std::vector<at::Tensor> special_written_;  // host forms of other layouts than dense
};

void run_on_host(OpRecord& record, c10::DeviceIndex index, c10::DispatchKeySet keys,
                 torch::jit::Stack* stack) {
  if (C10_UNLIKELY(run_in_wider_type(record, index, stack))) return;
  if (C10_UNLIKELY(is_capturing(index))) {
    refuse_op_in_capture(record.name, record.generator >= 0);
  }
  const uint64_t begin = ticks_now();
  check_host_kernel(record, index, host_keys(keys));
  HostRun run(record, index, stack);
  const bool copies = run.copies();
  check_may_copy(record, index, copies);
  if (copies) about_to_copy(record, index);
  run.run(keys);
  const int home = ordinal(index).home_device().id;
  const Tier tier = copies ? Tier::copy : Tier::native;
  count_op(record, tier, home, ticks_now() - begin, run.bytes_copied());
  if (C10_UNLIKELY(is_explaining())) explain_op(record, tier, home, current_placing());
}

// Whether something other than the row can run a call that a driver refused a kernel
// of.
bool has_next_tier(const OpRecord& record, const RowKernel& row,
                   c10::DeviceIndex index) {
  return kernel_policy() == KernelPolicy::automatic && !is_capturing(index) &&
         record.has_cpu_kernel && row.is_repeatable();
}

// A device failed: whether the call can be repeated at home, as far as its arguments
// are what they were.
bool can_repeat(const DeviceFailure& failure, const RowKernel& row, const Ordinal& on) {
  if (on.devices.size() == 1 || &failure.device == &on.home_device()) return false;
  take_out(failure);
  return row.is_repeatable();
}

// Whether home computed what another device was to compute of a divided op.
bool has_moved_piece(const RowChoice& choice) {
  return choice.placing.has_value() && choice.placing->piece_moved;
}

// Under AUTO no call waits for a kernel that something else can run it without.
BuildWaits waits_of(const OpRecord& record, const RowChoice& choice,
                    c10::DeviceIndex index) {
  const bool hurries = choice.placing.has_value() && !has_preference() &&
                       kernel_policy() == KernelPolicy::automatic &&
                       !is_deterministic() && choice.row->is_repeatable();
  if (!hurries) return {};
  const bool has_native =
      has_next_tier(record, *choice.row, index) && host_reads(index);
  return {false, has_native ? nullptr : &ordinal(index).home_device()};
}

// The physical device that ran the op; -1 if the home device's driver refuses to build
// a kernel of the row, or one is still being built, and the next tier is to run it.
int run_row(OpRecord& record, const RowChoice& choice, c10::DeviceIndex index,
            torch::jit::Stack* stack) {
  const RowKernel& row = *choice.row;
  const c10::ScalarType type = choice.look.type();
  const uint64_t begin = ticks_now();
  const Ordinal& on = ordinal(index);
  const int home = on.home_device().id;
  const int outer = std::exchange(noted_device, home);
  const auto restore = c10::make_scope_exit([&] { noted_device = outer; });
  const bool has_others = on.devices.size() > 1;
  const auto refused_elsewhere = [&] {
    return has_others && std::ranges::any_of(on.devices, [&](const auto* device) {
             return is_refused(record, device->id, type);
           });
  };
  std::optional<StayHome> at_home;
  if (refused_elsewhere()) at_home.emplace();
  const WaitsForBuilds waits(waits_of(record, choice, index));
  const size_t refused = last_refusal().count;
  for (;;) {
    try {
      choice.call->run(record.op, stack);
      if (has_moved_piece(choice) && last_refusal().count != refused) {
        remember_refusal(record, row, type, on.home_device());
      }
      break;
    } catch (const c10::OutOfMemoryError&) {
      // Under AUTO the home device may have room for what another one has not. Not for
      // a call that has written to its operands: they are not what they were.
      if (!has_others || at_home.has_value() || !row.is_repeatable()) throw;
    } catch (const KernelIsBuilding& building) {
      if (note_building(*choice.placing, current_stream(index), building.device)) {
        return -1;
      }
    } catch (const DeviceFailure& failure) {
      if (at_home.has_value() || !can_repeat(failure, row, on)) throw;
    } catch (...) {
      if (last_refusal().count == refused || !has_next_tier(record, row, index)) throw;
      remember_refusal(record, row, type, on.home_device());
      if (noted_device == home) return -1;
    }
    noted_device = home;
    at_home.emplace();
  }
  const Tier tier = choice.call->tier();
  count_op(record, tier, noted_device, ticks_now() - begin, 0);
  if (C10_UNLIKELY(is_explaining())) {
    explain_op(record, tier, noted_device, current_placing());
  }
  return noted_device;
}

// False if it ran otherwise than was chosen.
bool run_choice(OpRecord& record, const RowChoice& choice, c10::DeviceIndex index,
                c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  if (choice.row == nullptr) {
    run_on_host(record, index, keys, stack);
    return true;
  }
  const int ran_on = run_row(record, choice, index, stack);
  if (ran_on < 0) run_on_host(record, index, keys, stack);
  const bool divided = choice.placing.has_value() && !choice.placing->fractions.empty();
  if (!choice.placing.has_value() || divided) return ran_on >= 0;
  return ran_on == ordinal(index).devices[choice.placing->position]->id;
}

// On several devices, where the scheduler said.
void run_placed(OpRecord& record, const RowChoice& choice, c10::DeviceIndex index,
                c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const PlacedScope scope(&*choice.placing);
  if (C10_LIKELY(!choice.placing->timed)) {
    run_choice(record, choice, index, keys, stack);
    return;
  }
  PlacedClock clock(index, *choice.placing);
  if (run_choice(record, choice, index, keys, stack)) clock.done();
}

// The first write to a copy-on-write tensor copies it on the host, and PyTorch cannot
// take an error in the midst of that.
void refuse_first_writes(const OpRecord& record, const torch::jit::Stack& stack) {
  const size_t first = stack.size() - record.arguments;
  for (size_t i = 0; i < record.arguments; ++i) {
    if (!record.written[i]) continue;
    for_each_tensor(stack[first + i], [&](const at::Tensor& tensor) {
      if (!tensor.defined() || !tensor.has_storage() ||
          !tensor.storage().unsafeGetStorageImpl()->has_materializer()) {
        return;
      }
      refuse_in_capture(record.name + " into a copy-on-write tensor",
                        "its first write copies it on the host.");
    });
  }
}

}  // namespace

void note_device(int physical_device_id) {
  noted_device = physical_device_id;
}

void run_op_at(OpRecord& record, c10::DeviceIndex index, c10::DispatchKeySet keys,
               torch::jit::Stack* stack) {
  if (C10_UNLIKELY(is_capturing(index))) refuse_first_writes(record, *stack);
  // Rows read sizes and strides over one storage; other layouts have more, or none.
  RowChoice choice;
  if (is_plain(keys)) choose_row(record, index, *stack, &choice);
  if (choice.placing.has_value()) {
    run_placed(record, choice, index, keys, stack);
    return;
  }
  const PlacedScope scope(nullptr);  // an op within another one
  if (C10_LIKELY(choice.plan.timed == nullptr)) {
    run_choice(record, choice, index, keys, stack);
    return;
  }
  TurnClock clock(record, index, choice);
  if (run_choice(record, choice, index, keys, stack)) clock.done();
}

void run_op(OpRecord& record, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const c10::DeviceIndex index = ordinal_of_operands(record, *stack);
  const DeviceScope scope(index);
  run_op_at(record, index, keys, stack);
}

}  // namespace xpurt

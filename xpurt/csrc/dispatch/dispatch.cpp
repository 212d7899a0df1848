#include "dispatch/dispatch.h"

#include <algorithm>
#include <optional>

#include "device/device.h"
#include "device/device_failure.h"
#include "device/device_scope.h"
#include "host/clock.h"
#include "host/kept_error.h"
#include "memory/replica/device_override.h"
#include "native/alias.h"
#include "native/host_run.h"
#include "native/unsafe_copies.h"
#include "native/wider_types.h"
#include "op/fallback_mode.h"
#include "op/op_report.h"
#include "op/operands.h"
#include "op/stack_tensors.h"
#include "program/program.h"
#include "schedule/explain.h"
#include "schedule/kernel_refusal.h"
#include "schedule/partition.h"
#include "stream/capture.h"
#include "stream/earlier_errors.h"

namespace xpurt {
namespace {

void run_on_host(OpRecord& record, c10::DeviceIndex index, c10::DispatchKeySet keys,
                 torch::jit::Stack* stack, RowRun& run) {
  if (C10_UNLIKELY(run_in_wider_type(record, index, stack))) return;
  if (C10_UNLIKELY(is_capturing(index))) {
    refuse_op_in_capture(record.name, record.generator >= 0);
  }
  const uint64_t begin = ticks_now();
  check_host_kernel(record, index, host_keys(keys));
  const double begin_us = is_explaining() ? now_us() : 0;
  HostRun on_host(record, index, stack);
  // What is copied beside operands without elements is no loss.
  const bool copies = on_host.copies() && !has_no_elements(record.op.schema(), *stack);
  check_may_copy(record, index, copies);
  if (copies) {
    const bool by_mode = record.row.load() != nullptr && is_deterministic() &&
                         keeps_order_of_writes(record, *stack);
    about_to_copy(record, index,
                  by_mode ? MissingFor::determinism : MissingFor::operands);
  }
  on_host.run(keys);
  run.device_id = ordinal(index).home_device().id;
  const Tier tier = copies ? Tier::copy : Tier::native;
  count_op(record, tier, run.device_id, ticks_now() - begin, on_host.bytes_copied());
  if (C10_UNLIKELY(is_explaining())) explain_op(record, tier, run, now_us() - begin_us);
}

// Whether another tier can run a call after a driver refused to build its kernel.
bool has_next_tier(const OpRecord& record, const RowKernel& row,
                   c10::DeviceIndex index) {
  return kernel_policy() == KernelPolicy::automatic && !is_capturing(index) &&
         record.has_cpu_kernel && row.is_repeatable();
}

// Excludes a device that failed. Whether the call can be repeated at home: only if the
// failed run cannot have changed its arguments.
bool can_repeat(const DeviceFailure& failure, const RowKernel& row, const Ordinal& on) {
  if (on.devices.size() == 1 || &failure.device == &on.home_device()) return false;
  take_out(failure);
  return row.is_repeatable();
}

// Under AUTO no call waits for the build of a kernel if another candidate can run it.
BuildWaits waits_of(const OpRecord& record, const RowChoice& choice,
                    c10::DeviceIndex index) {
  const bool hurries = ordinal(index).devices.size() > 1 &&
                       choice.decision.has_value() && !has_preference(ordinal(index)) &&
                       kernel_policy() == KernelPolicy::automatic &&
                       !is_deterministic() && choice.row->is_repeatable();
  if (!hurries) return {};
  const bool has_native =
      has_next_tier(record, *choice.row, index) && host_reads(index);
  return {false, has_native ? nullptr : &ordinal(index).home_device()};
}

// Runs the call. If it is a part of another op, that op has to know the error's type.
void run_kept(RowCall& call, const c10::OperatorHandle& op, torch::jit::Stack* stack,
              RowRun& run) {
  if (C10_LIKELY(!is_on_shard())) return call.run(op, stack, run);
  kept_error = nullptr;  // of a call that was repeated
  try {
    call.run(op, stack, run);
  } catch (...) {
    keep_error();
    throw;
  }
}

enum class Attempt { done, again_at_home, next_tier };

// A row's call, which may fail on the devices that were chosen.
class RowAttempts {
 public:
  RowAttempts(OpRecord& record, const RowChoice& choice, c10::DeviceIndex index,
              RowRun& run)
      : record_(record), choice_(choice), index_(index), run_(run) {
    if (has_others_ && std::ranges::any_of(on_.devices, [&](const auto* device) {
          return is_refused(record_, device->id, type_);
        })) {
      at_home_.emplace();
    }
    // A part of a shard waits for the builds that the divided op waits for.
    if (!is_on_shard()) waits_.emplace(waits_of(record_, choice_, index_));
  }

  // False if the next tier has to run the call: the home device's driver refuses to
  // build a kernel of the row, or a kernel is still being built.
  bool run(torch::jit::Stack* stack) {
    run_.device_id = on_.working_device().id;
    bool repeated = false;
    for (;;) {
      const Attempt attempt = once(stack);
      if (attempt == Attempt::done) break;
      // Its predicted time is booked no more.
      if (run_.decision != nullptr) take_back(*run_.decision, current_stream(index_));
      if (attempt == Attempt::next_tier) return false;
      repeated = true;
      run_.device_id = on_.home_device().id;
      run_.fractions.clear();  // the repeated call is not divided
      run_.shard_moved = false;
      at_home_.emplace();
    }
    if (run_.decision != nullptr && run_.fractions.empty() && !repeated) {
      take_back_undivided(*run_.decision, current_stream(index_));
    }
    return true;
  }

 private:
  Attempt once(torch::jit::Stack* stack) {
    const RowKernel& row = *choice_.row;
    try {
      run_kept(*choice_.call, record_.op, stack, run_);
      if (run_.shard_moved && is_refused_now()) remember();
      return Attempt::done;
    } catch (const c10::OutOfMemoryError&) {
      // Under AUTO the home device may have room if another one has not. A call that
      // may have written to its operands is not repeated: they may have changed. Nor is
      // one under overflow, where work stays on the GPU.
      const bool may_repeat = has_others_ && !on_.overflows && row.is_repeatable();
      if (!may_repeat || is_home_alone()) throw;
    } catch (const KernelIsBuilding& building) {
      if (!choice_.decision.has_value()) throw;
      if (record_building(*choice_.decision, current_stream(index_), building.device)) {
        return Attempt::next_tier;
      }
    } catch (const DeviceFailure& failure) {
      if (is_home_alone() || !can_repeat(failure, row, on_)) throw;
    } catch (...) {
      if (moves_home_ || !is_refused_now() || earlier_errors_thrown() != earlier_ ||
          !has_next_tier(record_, row, index_)) {
        throw;
      }
      remember();
      if (run_.device_id == on_.home_device().id) return Attempt::next_tier;
    }
    return Attempt::again_at_home;
  }

  bool is_home_alone() const { return moves_home_ || at_home_.has_value(); }
  bool is_refused_now() const { return last_refusal().count != refused_; }
  void remember() { remember_refusal(record_, *choice_.row, type_, on_.home_device()); }

  OpRecord& record_;
  const RowChoice& choice_;
  const c10::DeviceIndex index_;
  RowRun& run_;
  const Ordinal& on_ = ordinal(index_);
  const bool has_others_ = on_.devices.size() > 1;
  const c10::ScalarType type_ = choice_.signature.type();
  // The divided op computes a shard at home that another device cannot compute.
  const bool moves_home_ =
      is_on_shard() && static_cast<size_t>(shard_position()) != on_.home;
  const size_t refused_ = last_refusal().count;
  const uint64_t earlier_ = earlier_errors_thrown();
  std::optional<HomeOnlyScope> at_home_;
  std::optional<WaitsForBuilds> waits_;
};

// Runs the row. False if the next tier has to run the call.
bool run_row(OpRecord& record, const RowChoice& choice, c10::DeviceIndex index,
             torch::jit::Stack* stack, RowRun& run) {
  const uint64_t begin = ticks_now();
  if (!RowAttempts(record, choice, index, run).run(stack)) return false;
  const Tier tier = choice.call->tier();
  count_op(record, tier, run.device_id, ticks_now() - begin, 0);
  if (C10_UNLIKELY(is_explaining())) explain_op(record, tier, run, 0);
  return true;
}

// False if the call ran on another device or tier than was chosen.
bool run_choice(OpRecord& record, const RowChoice& choice, c10::DeviceIndex index,
                c10::DispatchKeySet keys, torch::jit::Stack* stack, RowRun& run) {
  if (choice.row == nullptr) {
    run_on_host(record, index, keys, stack, run);
    return true;
  }
  if (!run_row(record, choice, index, stack, run)) {
    run_on_host(record, index, keys, stack, run);
    return false;
  }
  if (run.decision == nullptr || !run.fractions.empty()) return true;
  return run.device_id == ordinal(index).devices[run.decision->position]->id;
}

// Runs the call as chosen, and times it if it is a timed sample.
void run_chosen(OpRecord& record, const RowChoice& choice, c10::DeviceIndex index,
                c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  RowRun run;
  if (choice.decision.has_value()) {
    run.decision = &*choice.decision;
    if (C10_UNLIKELY(run.decision->timed)) {
      SampleTimer clock(index, run);
      if (run_choice(record, choice, index, keys, stack, run)) clock.done();
    } else {
      run_choice(record, choice, index, keys, stack, run);
    }
    record_results(*run.decision, record, current_stream(index), *stack);
    return;
  }
  run_choice(record, choice, index, keys, stack, run);
}

// Raises before a captured op writes to a copy-on-write tensor. The first write copies
// the tensor on the host, where PyTorch does not allow an error.
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

// `inspected`: the properties of the call, if they are known; else nullptr.
void run_at(OpRecord& record, c10::DeviceIndex index, const InspectedCall* inspected,
            c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  if (C10_UNLIKELY(is_capturing(index))) refuse_first_writes(record, *stack);
  RowChoice choice;
  // Rows support sizes and strides over one storage only.
  if (is_plain(keys)) choose_row(record, index, *stack, inspected, &choice);
  run_chosen(record, choice, index, keys, stack);
}

}  // namespace

void run_op_at(OpRecord& record, c10::DeviceIndex index, c10::DispatchKeySet keys,
               torch::jit::Stack* stack) {
  run_at(record, index, nullptr, keys, stack);
}

void run_inspected(OpRecord& record, c10::DeviceIndex index,
                   const InspectedCall& inspected, c10::DispatchKeySet keys,
                   torch::jit::Stack* stack) {
  const DeviceScope scope(index);
  run_at(record, index, &inspected, keys, stack);
}

void run_op(OpRecord& record, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const c10::DeviceIndex index = ordinal_of_operands(record, *stack);
  const DeviceScope scope(index);
  run_at(record, index, nullptr, keys, stack);
}

}  // namespace xpurt

#include "dispatch/dispatch.h"

#include <algorithm>
#include <optional>

#include "device/device.h"
#include "device/device_failure.h"
#include "device/device_scope.h"
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
#include "schedule/stream_clock.h"
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
                       choice.decision.has_value() && !has_preference() &&
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

// Runs the row. False if the next tier has to run the call: the home device's driver
// refuses to build a kernel of the row, or a kernel is still being built.
bool run_row(OpRecord& record, const RowChoice& choice, c10::DeviceIndex index,
             torch::jit::Stack* stack, RowRun& run) {
  const RowKernel& row = *choice.row;
  const c10::ScalarType type = choice.signature.type();
  const uint64_t begin = ticks_now();
  const Ordinal& on = ordinal(index);
  const int home = on.home_device().id;
  run.device_id = home;
  const bool has_others = on.devices.size() > 1;
  const auto refused_elsewhere = [&] {
    return has_others && std::ranges::any_of(on.devices, [&](const auto* device) {
             return is_refused(record, device->id, type);
           });
  };
  std::optional<HomeOnlyScope> at_home;
  if (refused_elsewhere()) at_home.emplace();
  // A part of a shard waits for the builds that the divided op waits for.
  std::optional<WaitsForBuilds> waits;
  if (!is_on_shard()) waits.emplace(waits_of(record, choice, index));
  // The divided op computes a shard at home that another device cannot compute.
  const bool moves_home =
      is_on_shard() && static_cast<size_t>(shard_position()) != on.home;
  const size_t refused = last_refusal().count;
  const uint64_t earlier = earlier_errors_thrown();
  // The predicted time of a call that does not run as decided is booked no more.
  bool dropped = false;
  const auto drop = [&] {
    dropped = true;
    if (run.decision != nullptr) take_back(*run.decision, current_stream(index));
  };
  for (;;) {
    try {
      run_kept(*choice.call, record.op, stack, run);
      if (run.shard_moved && last_refusal().count != refused) {
        remember_refusal(record, row, type, on.home_device());
      }
      break;
    } catch (const c10::OutOfMemoryError&) {
      // Under AUTO the home device may have room if another one has not. A call that
      // may have written to its operands is not repeated: they may have changed.
      if (!has_others || moves_home || at_home.has_value() || !row.is_repeatable()) {
        throw;
      }
    } catch (const KernelIsBuilding& building) {
      if (!choice.decision.has_value()) throw;
      if (record_building(*choice.decision, current_stream(index), building.device)) {
        drop();
        return false;
      }
    } catch (const DeviceFailure& failure) {
      if (moves_home || at_home.has_value() || !can_repeat(failure, row, on)) throw;
    } catch (...) {
      if (moves_home || last_refusal().count == refused ||
          earlier_errors_thrown() != earlier || !has_next_tier(record, row, index)) {
        throw;
      }
      remember_refusal(record, row, type, on.home_device());
      if (run.device_id == home) {
        drop();
        return false;
      }
    }
    drop();
    run.device_id = home;
    run.fractions.clear();  // the repeated call is not divided
    run.shard_moved = false;
    at_home.emplace();
  }
  if (run.decision != nullptr && run.fractions.empty() && !dropped) {
    take_back_undivided(*run.decision, current_stream(index));
  }
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

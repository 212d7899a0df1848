#include "cpu_tensors/row_on_cpu.h"

#include <algorithm>

#include "cpu_tensors/device_call.h"
#include "device/device_scope.h"
#include "host/clock.h"
#include "memory/cpu_allocator.h"
#include "op/op_report.h"
#include "op/row_call.h"
#include "op/stack_tensors.h"
#include "program/program_build.h"
#include "schedule/explain.h"
#include "schedule/kernel_refusal.h"
#include "schedule/learning_mode.h"
#include "schedule/row_run.h"
#include "stream/earlier_errors.h"
#include "stream/stream.h"

namespace xpurt {
namespace {

using torch::jit::Stack;

// In deterministic mode PyTorch's kernels keep the order, or raise.
bool keeps_order(const OpRecord& record, const Stack& stack) {
  if (!record.writes_in_any_order) return true;
  return record.accumulate >= 0 &&
         stack[stack.size() - record.arguments + record.accumulate].toBool();
}

// The largest operand's type, by which refused kernels are known.
c10::ScalarType type_of(const OpRecord& record, const Stack& stack) {
  int64_t most = -1;
  auto type = c10::ScalarType::Float;
  for (size_t i = stack.size() - record.arguments; i < stack.size(); ++i) {
    for_each_tensor(stack[i], [&](const at::Tensor& tensor) {
      if (!tensor.defined() || tensor.numel() <= most) return;
      most = tensor.numel();
      type = tensor.scalar_type();
    });
  }
  return type;
}

bool is_number(const at::Tensor& tensor) {
  return tensor.defined() && tensor.dim() == 0 &&
         tensor.unsafeGetTensorImpl()->is_wrapped_number();
}

Stack on_device(const OpRecord& record, const Stack& stack, DeviceCall* call) {
  Stack made;
  made.reserve(record.arguments);
  const size_t first = stack.size() - record.arguments;
  for (size_t i = 0; i < record.arguments; ++i) {
    made.push_back(with_tensors(
        stack[first + i],
        [&](const at::Tensor& tensor) {
          const bool written = record.written[i];
          return is_number(tensor) && !written ? tensor
                                               : call->to_other(tensor, written);
        },
        false));
  }
  return made;
}

// The error that the wait throws, if any.
std::exception_ptr error_of_wait(Stream& stream) noexcept {
  try {
    stream.wait();
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

void replace_arguments(const OpRecord& record, Stack results, DeviceCall* call,
                       Stack* stack) {
  for (c10::IValue& value : results) {
    value = with_tensors(
        std::move(value), [&](at::Tensor t) { return call->to_own(std::move(t)); },
        true);
  }
  torch::jit::drop(*stack, record.arguments);
  std::move(results.begin(), results.end(), std::back_inserter(*stack));
}

}  // namespace

bool run_row_on_cpu(OpRecord& record, c10::DeviceIndex index, const std::string& why,
                    Stack* stack) {
  const RowKernel* row = record.row.load(std::memory_order_acquire);
  if (row == nullptr || (is_deterministic() && !keeps_order(record, *stack))) {
    return false;
  }
  DeviceCall call(index);
  if (ordinal_of_host() != index) return false;  // the mapping has changed meanwhile
  const DeviceScope scope(index);
  Stream& stream = current_stream(index);
  const PhysicalDevice& home = stream.ordinal().home_device();
  const c10::ScalarType type = type_of(record, *stack);
  if (is_refused(record, home.id, type)) return false;
  const uint64_t begin = ticks_now();
  const double begin_us = is_explaining() ? now_us() : 0;
  const bool was_idle = stream.was_waited_for();
  const size_t refusals = last_refusal().count;
  const uint64_t earlier = earlier_errors_thrown();
  Stack operands = on_device(record, *stack, &call);
  Tier tier;
  try {
    RowCallStorage memory;
    RowCall* parsed = row->parse(operands, memory);
    if (parsed == nullptr) return false;
    RowRun run;
    run.device_id = home.id;
    parsed->run(record.op, &operands, run);
    tier = parsed->tier();
    stream.wait();
  } catch (...) {
    const bool writes = std::ranges::find(record.written, true) != record.written.end();
    const bool unchanged = !writes || (was_idle && stream.was_waited_for() &&
                                       row->is_repeatable() && !row->prior.in_parts);
    // Unless the stream was idle, an error that a wait throws may be earlier work's.
    const bool is_earlier = !was_idle && earlier_errors_thrown() != earlier;
    const std::exception_ptr left = error_of_wait(stream);
    if (!unchanged || is_earlier) throw;
    if (left && !was_idle) std::rethrow_exception(left);
    if (last_refusal().count != refusals) remember_refusal(record, *row, type, home);
    return false;
  }
  call.finish_arguments();
  replace_arguments(record, std::move(operands), &call, stack);
  count_op(record, tier, kCpuTensors, ticks_now() - begin, 0);
  if (C10_UNLIKELY(is_explaining())) {
    explain_other(record.name, "cpu", tier, why, now_us() - begin_us);
  }
  return true;
}

}  // namespace xpurt

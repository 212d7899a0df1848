#include "cpu_tensors/cpu_kernels.h"

#include <ATen/Parallel.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <cmath>
#include <memory>
#include <unordered_map>

#include "cpu_tensors/call_class.h"
#include "cpu_tensors/paired_choice.h"
#include "cpu_tensors/row_on_cpu.h"
#include "device/device.h"
#include "host/clock.h"
#include "host/mutex.h"
#include "host/no_warnings.h"
#include "memory/cpu_allocator.h"
#include "op/row_kernel.h"
#include "program/program_build.h"
#include "schedule/explain.h"
#include "schedule/learning_mode.h"
#include "stream/capture.h"

namespace xpurt {
namespace {

using c10::DispatchKey;
using c10::DispatchKeySet;
using c10::OperatorHandle;
using Stock = std::shared_ptr<const c10::SafeKernelFunction>;

// Operands of fewer elements are PyTorch's, if the choice is by cost: its kernel ends
// before a queue has started one.
constexpr int64_t kLeastElements = 4096;

struct CpuOp {
  explicit CpuOp(OpRecord& r) : record(r) {}

  OpRecord& record;
  std::atomic<bool> with_scalars{false};
  std::atomic<Stock> stock;
  PairedChoice choice;
};

// All ops that ever had a kernel. A table is not changed once it is published, and
// never freed: kernels read it without a lock.
using Table = std::unordered_map<OperatorHandle, CpuOp*>;

std::atomic<const Table*> published{new Table};
std::atomic<CpuKernels> current{CpuKernels::native};

// Leaked: at the end of the process the dispatcher may be gone.
struct Registered {
  Mutex mutex{Rank::cpu_kernels};
  std::unordered_map<c10::OperatorName, c10::RegistrationHandleRAII> handles;
};
Registered& registered() {
  static auto* const leaked = new Registered;
  return *leaked;
}

// A row that calls ops of CPU tensors gets PyTorch's kernels.
thread_local bool is_within_row = false;

struct WithinRow {
  WithinRow() { is_within_row = true; }
  ~WithinRow() { is_within_row = false; }
};

// Whether rows may compute CPU tensors in this thread now.
bool rows_may_run() {
  return !is_within_row && !results_are_on_device() && !in_bad_fork() &&
         !is_exiting() && !at::in_parallel_region() && !capture_is_underway();
}

bool run_row(CpuOp& op, const std::string& why, torch::jit::Stack* stack) {
  const c10::DeviceIndex index = ordinal_of_host();
  if (index < 0) return false;
  const WithinRow scope;
  return run_row_on_cpu(op.record, index, why, stack);
}

std::string reason(CpuOp& op, uint64_t key) {
  if (!is_explaining()) return {};
  const PairedTimes times = op.choice.times(key);
  if (times.row_us == 0) return "a trial, to learn what it costs";
  return "measured: " + std::to_string(std::lround(times.row_us)) +
         " us, and PyTorch's kernel " + std::to_string(std::lround(times.stock_us)) +
         " us";
}

void run_by_cost(CpuOp& op, const CallClass& call, const OperatorHandle& handle,
                 DispatchKeySet keys, torch::jit::Stack* stack) {
  const RowKernel* row = op.record.row.load(std::memory_order_acquire);
  const double build_us = row == nullptr            ? 0
                          : row->prior.build_us < 0 ? expected_build_us()
                                                    : row->prior.build_us;
  const FormTurn turn = op.choice.next(call.key, build_us);
  const double begin_us = turn.timed ? now_us() : 0;
  if (turn.second) {
    if (run_row(op, reason(op, call.key), stack)) {
      if (turn.timed) op.choice.record(call.key, true, now_us() - begin_us);
      return;
    }
    op.choice.refuse(call.key);
  }
  op.stock.load()->callBoxed(handle, keys, stack);
  if (turn.timed && !turn.second) {
    op.choice.record(call.key, false, now_us() - begin_us);
  }
}

void run_cpu_op(const OperatorHandle& handle, DispatchKeySet keys,
                torch::jit::Stack* stack) {
  CpuOp& op = *published.load(std::memory_order_acquire)->at(handle);
  const CpuKernels mode = current.load(std::memory_order_relaxed);
  if (mode != CpuKernels::native && rows_may_run()) {
    const CallClass call = class_of(op.record, *stack, op.with_scalars);
    if (call.accepted && mode == CpuKernels::sycl) {
      if (run_row(op, "the CPU kernels are sycl", stack)) return;
    } else if (call.accepted && call.elements >= kLeastElements &&
               learning_mode() == LearningMode::learns) {
      return run_by_cost(op, call, handle, keys, stack);
    }
  }
  op.stock.load()->callBoxed(handle, keys, stack);
}

bool can_have_kernel(const OpRecord& record) {
  return record.row.load(std::memory_order_acquire) != nullptr &&
         record.op.hasKernelForDispatchKey(DispatchKey::CPU) && record.generator < 0 &&
         !record.uses_requires_grad && !record.mixes_devices;
}

// Requires the mutex. The op's part of the table, which is made if it is new.
CpuOp& published_op(OpRecord& record) {
  const Table& now = *published.load();
  if (const auto found = now.find(record.op); found != now.end()) return *found->second;
  auto* made = new Table(now);
  CpuOp* op = (*made)[record.op] = new CpuOp(record);
  published.store(made, std::memory_order_release);
  return *op;
}

void add(OpRecord& record, const CpuOpEntry& entry) {
  auto& handles = registered().handles;
  const c10::OperatorName& name = record.op.operator_name();
  CpuOp& op = published_op(record);
  op.with_scalars = entry.with_scalars;
  if (handles.contains(name)) return;
  op.stock = std::make_shared<const c10::SafeKernelFunction>(
      record.op.getComputedKernelForDispatchKey(DispatchKey::CPU));
  const NoWarnings quiet;
  handles.emplace(
      name, c10::Dispatcher::singleton().registerImpl(
                name, DispatchKey::CPU,
                c10::KernelFunction::makeFromBoxedFunction<&run_cpu_op>(), std::nullopt,
                nullptr, "xpurt: a row, or PyTorch's kernel"));
}

}  // namespace

void set_cpu_kernels(CpuKernels mode, const std::vector<CpuOpEntry>& ops) {
  const std::lock_guard<Mutex> lock(registered().mutex);
  if (mode != CpuKernels::native) current = mode;
  std::unordered_map<c10::OperatorName, c10::RegistrationHandleRAII> before;
  std::swap(before, registered().handles);
  for (const CpuOpEntry& entry : ops) {
    const auto op =
        c10::Dispatcher::singleton().findSchema({entry.name, entry.overload});
    if (!op.has_value()) continue;
    OpRecord& record = op_record(*op);
    if (!can_have_kernel(record)) continue;
    if (auto node = before.extract(record.op.operator_name()); !node.empty()) {
      registered().handles.insert(std::move(node));
    }
    add(record, entry);
  }
  before.clear();
  current = mode;
}

CpuKernels cpu_kernels() {
  return current;
}

std::vector<std::string> ops_with_cpu_kernels() {
  const std::lock_guard<Mutex> lock(registered().mutex);
  std::vector<std::string> names;
  for (const auto& [name, handle] : registered().handles) {
    names.push_back(toString(name));
  }
  return names;
}

}  // namespace xpurt

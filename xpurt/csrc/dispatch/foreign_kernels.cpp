#include "dispatch/foreign_kernels.h"

#include <ATen/core/List.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <atomic>
#include <unordered_map>
#include <unordered_set>

#include "host/mutex.h"
#include "host/no_warnings.h"
#include "memory/replica/host_writes.h"
#include "memory/replica/replica.h"
#include "native/alias.h"
#include "op/op_record.h"

namespace xpurt {
namespace {

using c10::DispatchKey;
using c10::OperatorHandle;
using c10::OperatorName;

// Note [Foreign kernels]
// ~~~~~~~~~~~~~~~~~~~~~~
// Another library's kernel for xpu reads a tensor's pointer and uses it on the current
// stream's queue, or on the host. If an ordinal has several devices, the bytes at that
// pointer, the home copy, may be stale, and PyTorch does not report that it returned
// the pointer. So such a kernel is wrapped: its operands are brought home first, and
// the work of the stream's other queues is ordered before and after it. Replicas of the
// operands are dropped, even those of inputs in the schema: the kernel may write to
// them nonetheless.
//
// The home copy is stale only after xpurt ran work on another device. So foreign
// kernels are searched for once before that happens, and again if libraries have
// defined ops since. When an op is defined, all copies are brought home at once, since
// the next call may be one of the new op. If a library adds a kernel for xpu to another
// library's op that was defined before, that kernel is not noticed.
struct Watch {
  Mutex mutex{Rank::foreign_kernels};  // locked before the dispatcher's mutex
  std::unordered_set<OperatorName> ours;
  std::unordered_map<OperatorName, c10::RegistrationHandleRAII> adapted;
  Mutex gone_mutex{Rank::gone_ops};  // locked after the dispatcher's mutex
  std::vector<OperatorName> gone;    // ops that no longer exist
};

Watch& watch() {
  static Watch* const leaked = new Watch;
  return *leaked;
}

std::atomic<bool> ops_were_added{true};

template <typename Visit>
void for_each_xpu_tensor(const c10::IValue& value, const Visit& visit) {
  if (value.isTensor()) {
    const at::Tensor& tensor = value.toTensor();
    if (tensor.defined() && tensor.is_xpu() && is_plain(tensor) &&
        tensor.has_storage()) {
      visit(tensor);
    }
  } else if (value.isList()) {
    for (const c10::IValue& element : value.toListRef()) {
      if (!element.isTensor() && !element.isList() && !element.isNone()) return;
      for_each_xpu_tensor(element, visit);
    }
  }
}

class AtHome final : public c10::OperatorKernel {
 public:
  explicit AtHome(c10::SafeKernelFunction kernel) : kernel_(std::move(kernel)) {}

  void operator()(const OperatorHandle& op, c10::DispatchKeySet keys,
                  torch::jit::Stack* stack) {
    const OpRecord& record = op_record(op);
    const size_t first = stack->size() - record.arguments;
    HostWrites writes(/*may_block=*/true);
    for (size_t i = 0; i < record.arguments; ++i) {
      for_each_xpu_tensor((*stack)[first + i], [&](const at::Tensor& tensor) {
        if (record.written[i]) writes.begin(*tensor.unsafeGetTensorImpl());
        bring_home(*tensor.storage().unsafeGetStorageImpl(), Access::read_write);
        order_home_queue(tensor.device().index());
      });
    }
    kernel_.callBoxed(op, keys, stack);
    order_home_queue(current_device());
  }

 private:
  // The kernel may keep the queue and submit to it without xpurt's knowledge.
  static void order_home_queue(c10::DeviceIndex index) {
    if (ordinal(index).devices.size() > 1) current_stream(index).home_queue();
  }

  c10::SafeKernelFunction kernel_;
};

class Listener final : public c10::OpRegistrationListener {
 public:
  // The dispatcher's lock is held, so nothing can be registered here.
  void onOperatorRegistered(const OperatorHandle&) override {
    ops_were_added = true;
    bring_all_home();
  }
  void onOperatorDeregistered(const OperatorHandle& op) override {
    retire_op_record(op);
    ops_were_added = true;
    std::lock_guard<Mutex> lock(watch().gone_mutex);
    watch().gone.push_back(op.operator_name());
  }
};

c10::RegistrationHandleRAII adapt(const OperatorHandle& op) {
  const NoWarnings quiet;
  return c10::Dispatcher::singleton().registerImpl(
      op.operator_name(), DispatchKey::XPU,
      c10::KernelFunction::makeFromBoxedFunctor(std::make_unique<AtHome>(
          op.getComputedKernelForDispatchKey(DispatchKey::XPU))),
      std::nullopt, nullptr, "brings operands home");
}

// Removes the wrappers of ops that no longer exist, and returns them: the destruction
// of a kernel may need the GIL.
std::vector<c10::RegistrationHandleRAII> take_gone() {
  std::vector<OperatorName> gone;
  {
    std::lock_guard<Mutex> lock(watch().gone_mutex);
    gone = std::exchange(watch().gone, {});
  }
  std::vector<c10::RegistrationHandleRAII> taken;
  for (const OperatorName& name : gone) {
    auto node = watch().adapted.extract(name);
    if (!node.empty()) taken.push_back(std::move(node.mapped()));
  }
  return taken;
}

// Wraps foreign kernels. Called before work may leave home.
void adapt_foreign_kernels() {
  if (C10_LIKELY(!ops_were_added.load(std::memory_order_acquire))) return;
  auto& dispatcher = c10::Dispatcher::singleton();
  const std::vector<OperatorName> names = dispatcher.getAllOpNames();
  std::vector<c10::RegistrationHandleRAII> gone;  // destroyed after the lock
  std::lock_guard<Mutex> lock(watch().mutex);
  ops_were_added = false;
  gone = take_gone();
  for (const OperatorName& name : names) {
    if (watch().ours.contains(name) || watch().adapted.contains(name)) continue;
    const auto op = dispatcher.findOp(name);
    if (!op || !op->hasSchema() || !op->hasKernelForDispatchKey(DispatchKey::XPU)) {
      continue;
    }
    watch().adapted.emplace(name, adapt(*op));
  }
}

}  // namespace

void watch_foreign_kernels() {
  auto& dispatcher = c10::Dispatcher::singleton();
  for (const OperatorName& name : dispatcher.getAllOpNames()) {
    const bool is_ours =
        name.name.starts_with("aten::") || name.name.starts_with("c10d::");
    if (is_ours) watch().ours.insert(name);
  }
  static auto* const kept = new c10::RegistrationHandleRAII(
      dispatcher.addRegistrationListener(std::make_unique<Listener>()));
  (void)kept;
  before_leaving_home(&adapt_foreign_kernels);
}

}  // namespace xpurt

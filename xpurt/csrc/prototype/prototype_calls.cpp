#include "prototype/prototype_calls.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <map>
#include <memory>

#include "host/mutex.h"
#include "prototype/prototype_parts.h"

namespace xpurt {
namespace {

using c10::OperatorHandle;

struct AllCalls {
  Mutex mutex{Rank::prototype_calls};
  std::map<std::pair<std::string, ComputedBy>, std::unique_ptr<OpCalls>> of_op;
};

AllCalls& all_calls(const PrototypeDevice& device) {
  static auto* const leaked =
      new std::array<AllCalls, c10::COMPILE_TIME_MAX_DEVICE_TYPES>;
  return (*leaked)[static_cast<size_t>(device.type())];
}

class RunVendorKernel final : public c10::OperatorKernel {
 public:
  RunVendorKernel(c10::SafeKernelFunction kernel, OpCalls& calls)
      : kernel_(std::move(kernel)), calls_(calls) {}

  void operator()(const OperatorHandle& op, c10::DispatchKeySet keys,
                  torch::jit::Stack* stack) {
    const CountedCall counted(calls_);
    kernel_.callBoxed(op, keys, stack);
  }

 private:
  const c10::SafeKernelFunction kernel_;
  OpCalls& calls_;
};

// By where the dispatcher says that the kernel was registered: PyTorch's own kernels,
// and those of this folder, are not the vendor's.
bool is_of_vendor(const c10::SafeKernelFunction& kernel) {
  for (const char* place : {"csrc/prototype/", "/torch/csrc/", "/aten/src/"}) {
    if (kernel.debug().find(place) != std::string::npos) return false;
  }
  return true;
}

}  // namespace

bool has_vendor_kernel(const OperatorHandle& op, c10::DispatchKey key) {
  return op.hasKernelForDispatchKey(key) && !op.isKernelFallthroughKernel(key) &&
         is_of_vendor(op.getComputedKernelForDispatchKey(key));
}

OpCalls& op_calls(const PrototypeDevice& device, const std::string& op, ComputedBy by) {
  AllCalls& all = all_calls(device);
  const std::lock_guard<Mutex> lock(all.mutex);
  auto& found = all.of_op[{op, by}];
  if (!found) found = std::make_unique<OpCalls>();
  return *found;
}

std::vector<OpCallsRow> op_calls_report(const PrototypeDevice& device) {
  AllCalls& all = all_calls(device);
  const std::lock_guard<Mutex> lock(all.mutex);
  std::vector<OpCallsRow> rows;
  for (const auto& [key, of] : all.of_op) {
    if (of->calls == 0) continue;
    rows.push_back({key.first, key.second, of->calls, of->bytes_copied,
                    static_cast<double>(of->ns) * 1e-9});
  }
  return rows;
}

void reset_op_calls(const PrototypeDevice& device) {
  AllCalls& all = all_calls(device);
  const std::lock_guard<Mutex> lock(all.mutex);
  for (const auto& [key, of] : all.of_op) of->calls = of->ns = of->bytes_copied = 0;
}

void count_vendor_kernels(const PrototypeDevice& device) {
  auto& dispatcher = c10::Dispatcher::singleton();
  const WithoutOverrideWarning silent;
  for (const c10::DispatchKey layout : kTensorLayouts) {
    const c10::DispatchKey own = device.own_key(layout);
    for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
      const auto op = dispatcher.findSchema(name);
      if (!op || !has_vendor_kernel(*op, own)) continue;
      c10::SafeKernelFunction kernel = op->getComputedKernelForDispatchKey(own);
      const std::string space(*op->operator_name().getNamespace());
      auto* kept =
          new torch::Library(torch::Library::IMPL, space, own, __FILE__, __LINE__);
      OpCalls& calls = op_calls(device, toString(name), ComputedBy::vendor);
      kept->impl(toString(name).c_str(),
                 torch::CppFunction::makeFromBoxedFunctor(
                     std::make_unique<RunVendorKernel>(std::move(kernel), calls)));
    }
  }
}

}  // namespace xpurt

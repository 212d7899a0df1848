#include "schedule/dependences.h"

#include "host/host_waits.h"
#include "op/op_record.h"
#include "op/stack_tensors.h"

namespace xpurt {
namespace {

bool is_tracked(const at::Tensor& tensor) {
  return tensor.defined() && tensor.is_xpu() && tensor.has_storage();
}

}  // namespace

Parallelism::Operand Dependences::operand_of(const at::Tensor& tensor) {
  const c10::Storage& storage = tensor.storage();
  const c10::StorageImpl* impl = storage.unsafeGetStorageImpl();
  if (known_.empty()) known_.assign(kKnown, {c10::Storage().getWeakStorageImpl(), 0});
  const auto bits = reinterpret_cast<uintptr_t>(impl);
  Known& known = known_[(bits >> 4 ^ bits >> 13) % kKnown];
  if (known.number == 0 || known.storage._unsafe_get_target() != impl) {
    known = {storage.getWeakStorageImpl(), ++numbers_};
  }
  // Inference tensors have no version.
  const uint32_t version =
      tensor.is_inference()
          ? 0
          : tensor.unsafeGetTensorImpl()->version_counter().current_version();
  return {known.number, version};
}

double Dependences::add_call(const OpRecord& record, const torch::jit::Stack& stack,
                             double cost_us, bool blocks) {
  const uint64_t waits = host_waits.load(std::memory_order_relaxed);
  if (waits != host_waits_) parallelism_.join();
  host_waits_ = waits;
  const size_t first = stack.size() - record.arguments;
  c10::SmallVector<Parallelism::Operand, 4> reads, written;
  for (size_t i = 0; i < record.arguments; ++i) {
    for_each_tensor(stack[first + i], [&](const at::Tensor& tensor) {
      if (!is_tracked(tensor)) return;
      reads.push_back(operand_of(tensor));
      if (record.written[i]) written.push_back(reads.back());
    });
  }
  const double end_us = parallelism_.add(cost_us, reads, blocks);
  for (Parallelism::Operand each : written) {
    ++each.version;  // PyTorch counts the write when the op has returned
    parallelism_.add_written(each, end_us);
  }
  return end_us;
}

void Dependences::add_results(const OpRecord& record, const torch::jit::Stack& stack,
                              double end_us) {
  for (size_t i = stack.size() - record.returns; i < stack.size(); ++i) {
    for_each_tensor(stack[i], [&](const at::Tensor& tensor) {
      if (is_tracked(tensor)) parallelism_.add_result(operand_of(tensor), end_us);
    });
  }
}

}  // namespace xpurt

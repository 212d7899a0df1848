// One run of an op by PyTorch's CPU kernel, on the bytes of its operands or on copies.
#pragma once

#include <ATen/core/stack.h>

#include <optional>
#include <utility>
#include <vector>

#include "native/host_call.h"
#include "native/unsafe_copies.h"
#include "op/op_record.h"

namespace xpurt {

class HostRun {
 public:
  // The arguments are at the end of the stack.
  HostRun(OpRecord& record, c10::DeviceIndex index, torch::jit::Stack* stack);

  // Whether some argument, or a result, has to be copied.
  bool copies() const { return call_->copies(); }

  // Replaces the arguments by the results.
  void run(c10::DispatchKeySet keys);

  uint64_t bytes_copied() const { return bytes_copied_; }

 private:
  c10::IValue& argument(size_t i) { return (*stack_)[first_ + i]; }
  bool may_cross_devices();
  void announce();
  bool may_write(size_t i, c10::Device device) const;
  at::Tensor to_host(at::Tensor tensor, size_t i, std::optional<CopyAudit>& audit);
  void watch(const at::Tensor& original, const at::Tensor& host);
  void escape_kept();
  void convert_device(c10::IValue& value);
  void convert_arguments(std::optional<CopyAudit>& audit);
  void own_results();
  void check_written() const;
  void convert_results();

  OpRecord& record_;
  c10::DeviceIndex index_;
  torch::jit::Stack* stack_;
  size_t first_ = stack_->size() - record_.arguments;
  std::optional<HostCall> call_{std::in_place, index_, !record_.is_aten_op};
  bool is_asked_elsewhere_ = false;  // the results are for a device other than xpu
  std::vector<at::Tensor> hosts_;    // host forms of the arguments in that case
  uint64_t bytes_copied_ = 0;
  std::vector<at::Tensor> special_written_;  // host forms that are not plain
  // Storages of arguments, and their aliases, which the kernel may keep.
  using Weak = c10::weak_intrusive_ptr<c10::StorageImpl>;
  std::vector<std::pair<c10::Storage, Weak>> watched_;
};

}  // namespace xpurt

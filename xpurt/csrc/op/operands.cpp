#include "op/operands.h"

#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>

#include "device/device.h"
#include "op/stack_tensors.h"
#include "stream/capture.h"

namespace xpurt {
namespace {

[[noreturn]] void refuse_devices(const std::string& op, c10::Device one,
                                 c10::Device other, const std::string& argument) {
  TORCH_CHECK(false,
              "Expected all tensors to be on the same device, but found at least two "
              "devices, ",
              one, " and ", other, "! (", other, " is where argument ", argument,
              " of ", op, " is). Move it: .to(\"", one, "\")");
}

class OperandDevices {
 public:
  explicit OperandDevices(const OpRecord& record) : record_(record) {}

  void add(const c10::IValue& value, size_t position) {
    if (value.isTensor()) {
      const auto* impl = value.unsafeToTensorImpl();
      if (impl != c10::UndefinedTensorImpl::singleton()) add(*impl, position);
    } else if (value.isList()) {
      for (const c10::IValue& element : value.toListRef()) {
        if (!element.isTensor() && !element.isList()) break;
        add(element, position);
      }
    } else if (value.isDevice()) {
      const c10::Device device = value.toDevice();
      if (device.is_xpu())
        asked_ = device.has_index() ? device.index() : current_device();
    }
  }

  c10::DeviceIndex ordinal() const {
    if (index_ < 0) {
      if (asked_ >= 0) return asked_;
      // Only the generator argument dispatched the op to xpu.
      TORCH_CHECK(foreign_ == nullptr || record_.generator < 0, "Expected a '",
                  foreign_->device().type(),
                  "' device type for generator but found 'xpu'");
      return current_device();
    }
    if (foreign_ != nullptr && !record_.mixes_devices) fail();
    // A Device argument gives the device of the results.
    return asked_ >= 0 ? asked_ : index_;
  }

 private:
  void add(const c10::TensorImpl& tensor, size_t position) {
    const c10::Device device = tensor.device();
    if (C10_LIKELY(device.is_xpu())) {
      if (index_ < 0) {
        index_ = device.index();
      } else if (index_ != device.index() && foreign_ == nullptr) {
        foreign_ = &tensor;
        position_ = position;
      }
    } else if (foreign_ == nullptr && !record_.anywhere[position] &&
               (tensor.dim() > 0 || record_.written[position])) {
      foreign_ = &tensor;
      position_ = position;
    }
  }

  [[noreturn]] void fail() const {
    refuse_devices(record_.name, c10::Device(c10::DeviceType::XPU, index_),
                   foreign_->device(),
                   record_.op.schema().arguments()[position_].name());
  }

  const OpRecord& record_;
  c10::DeviceIndex index_ = -1;
  c10::DeviceIndex asked_ = -1;
  const c10::TensorImpl* foreign_ = nullptr;
  size_t position_ = 0;
};

}  // namespace

c10::DeviceIndex ordinal_of_operands(const OpRecord& record,
                                     const torch::jit::Stack& stack) {
  OperandDevices operands(record);
  const size_t first = stack.size() - record.arguments;
  for (size_t i = 0; i < record.arguments; ++i) operands.add(stack[first + i], i);
  return operands.ordinal();
}

bool has_no_elements(const c10::FunctionSchema& schema,
                     const torch::jit::Stack& stack) {
  const auto& arguments = schema.arguments();
  const size_t first = stack.size() - arguments.size();
  bool has_empty = false, has_elements = false;
  for (size_t i = 0; i < arguments.size() && !arguments[i].is_out(); ++i) {
    for_each_tensor(stack[first + i], [&](const at::Tensor& tensor) {
      if (!tensor.defined()) return;
      has_empty = has_empty || tensor.numel() == 0;
      has_elements = has_elements || (tensor.dim() > 0 && tensor.numel() > 0);
    });
    if (i == 0 && has_empty && stack[first].isTensor()) return true;
  }
  return has_empty && !has_elements;
}

bool is_left_to_host(bool has_cpu_kernel, const c10::FunctionSchema& schema,
                     const torch::jit::Stack& stack, c10::Device device) {
  return has_cpu_kernel && has_no_elements(schema, stack) &&
         !(device.is_xpu() && is_capturing(device.index()));
}

bool has_wrong_length(const at::Tensor& parameter, const at::Tensor& input) {
  return input.dim() > 1 && parameter.numel() != input.size(1);
}

void check_length(const at::Tensor& parameter, const at::Tensor& input,
                  const std::string& name) {
  if (!parameter.defined() || !has_wrong_length(parameter, input)) return;
  TORCH_CHECK(false, name, " should contain ", input.size(1), " elements not ",
              parameter.numel());
}

void check_same_device(const char* op, const at::Tensor& first, const at::Tensor& other,
                       const char* name) {
  if (other.device() != first.device()) {
    refuse_devices(op, first.device(), other.device(), name);
  }
}

}  // namespace xpurt

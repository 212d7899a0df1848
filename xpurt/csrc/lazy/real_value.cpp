#include "lazy/real_value.h"

#include <ATen/FunctionalTensorWrapper.h>
#include <torch/csrc/lazy/backend/backend_device.h>
#include <torch/csrc/lazy/core/tensor.h>

#include "lazy/one_thread.h"
#include "lazy/opened_tensor.h"
#include "lazy/real_devices.h"

namespace xpurt {

using at::Tensor;

Tensor lazy_over(const Tensor& xpu) {
  TORCH_CHECK_TYPE(xpu.is_xpu(), "a tensor of xpu is needed; found one on ",
                   xpu.device());
  const c10::Device device(c10::DeviceType::Lazy, xpu.device().index());
  return with_lazy_core([&] {
    const Tensor lazy =
        torch::lazy::CreateAtenFromLtcTensor(torch::lazy::LazyTensor::Create(
            xpu, torch::lazy::atenDeviceToBackendDevice(device)));
    keep_sizes(lazy);
    return at::functionalization::impl::to_functional_tensor(lazy);
  });
}

Tensor real_value(const Tensor& lazy) {
  TORCH_CHECK_TYPE(lazy.device().is_lazy(), "a lazy tensor is needed; found one on ",
                   lazy.device());
  at::functionalization::impl::sync(lazy);
  return with_lazy_core([&] {
    torch::lazy::LazyTensor& of = *torch::lazy::TryGetLtcTensor(lazy);
    return moved_to(of.ToTensor(/*detached=*/false), real_device(of.GetDevice()));
  });
}

// PyTorch lets two tensors with kernels of dense memory exchange their data.
void refuse_as_data(const Tensor& wrapper) {
  auto& keys = wrapper.unsafeGetTensorImpl()->*&OpenedTensor::key_set_;
  keys = keys.remove(c10::DispatchKey::Dense);
}

}  // namespace xpurt

#include "c10/cuda_build.h"

#include <ATen/detail/CUDAHooksInterface.h>

#include <memory>
#include <new>

namespace xpurt {
namespace {

using at::CUDAHooksInterface;
using c10::DeviceIndex;

// Note [Two accelerators]
// ~~~~~~~~~~~~~~~~~~~~~~~
// PyTorch allows one accelerator per process: with CUDA and XPU both "built", every
// backward fails, also that of CPU tensors. So isBuilt() is true for at most one of the
// two hooks objects at a time, and can change at run time.
//
// CUDA's object exists since `import torch`. A decorator is constructed in its place.
// It forwards every call to a second object of CUDA's own class, except isBuilt(). The
// interface has no data members, so both objects are one pointer to a table of virtual
// functions, and the decorator keeps its delegate in a static.
std::unique_ptr<CUDAHooksInterface>& delegate() {
  static auto* const leaked = new std::unique_ptr<CUDAHooksInterface>;
  return *leaked;
}

bool (*yields_now)() = nullptr;

#define FORWARD(result, name, parameters, arguments) \
  result name parameters const override {            \
    return delegate()->name arguments;               \
  }

struct YieldingCudaHooks final : CUDAHooksInterface {
  bool isBuilt() const override { return !yields_now() && delegate()->isBuilt(); }

  FORWARD(void, init, (), ())
  FORWARD(bool, isAvailable, (), ())
  FORWARD(DeviceIndex, deviceCount, (), ())
  FORWARD(void, setCurrentDevice, (DeviceIndex device), (device))
  FORWARD(DeviceIndex, getCurrentDevice, (), ())
  FORWARD(DeviceIndex, exchangeDevice, (DeviceIndex device), (device))
  FORWARD(DeviceIndex, maybeExchangeDevice, (DeviceIndex device), (device))
  FORWARD(const at::Generator&, getDefaultGenerator, (DeviceIndex device), (device))
  FORWARD(at::Generator, getNewGenerator, (DeviceIndex device), (device))
  FORWARD(at::Device, getDeviceFromPtr, (void* data), (data))
  FORWARD(bool, isPinnedPtr, (const void* data), (data))
  FORWARD(bool, hasPrimaryContext, (DeviceIndex device), (device))
  FORWARD(at::Allocator*, getPinnedMemoryAllocator, (), ())
  FORWARD(bool, hasCUDA, (), ())
  FORWARD(bool, hasCUDART, (), ())
  FORWARD(bool, hasMAGMA, (), ())
  FORWARD(bool, hasCuDNN, (), ())
  FORWARD(bool, hasCuSOLVER, (), ())
  FORWARD(bool, hasCuBLASLt, (), ())
  FORWARD(bool, hasROCM, (), ())
  FORWARD(bool, hasCKSDPA, (), ())
  FORWARD(bool, hasCKGEMM, (), ())
  FORWARD(const at::cuda::NVRTC&, nvrtc, (), ())
  FORWARD(DeviceIndex, current_device, (), ())
  FORWARD(at::Allocator*, getCUDADeviceAllocator, (), ())
  FORWARD(bool, compiledWithCuDNN, (), ())
  FORWARD(bool, compiledWithMIOpen, (), ())
  FORWARD(bool, supportsDilatedConvolutionWithCuDNN, (), ())
  FORWARD(bool, supportsDepthwiseConvolutionWithCuDNN, (), ())
  FORWARD(bool, supportsBFloat16ConvolutionWithCuDNNv8, (), ())
  FORWARD(bool, supportsBFloat16RNNWithCuDNN, (), ())
  FORWARD(long, versionCuDNN, (), ())
  FORWARD(long, versionRuntimeCuDNN, (), ())
  FORWARD(long, versionCuDNNFrontend, (), ())
  FORWARD(long, versionMIOpen, (), ())
  FORWARD(long, versionHipBLASLt, (), ())
  FORWARD(long, versionCUDART, (), ())
  FORWARD(std::string, showConfig, (), ())
  FORWARD(double, batchnormMinEpsilonCuDNN, (), ())
  FORWARD(int64_t, cuFFTGetPlanCacheMaxSize, (DeviceIndex device), (device))
  FORWARD(void, cuFFTSetPlanCacheMaxSize, (DeviceIndex device, int64_t size),
          (device, size))
  FORWARD(int64_t, cuFFTGetPlanCacheSize, (DeviceIndex device), (device))
  FORWARD(void, cuFFTClearPlanCache, (DeviceIndex device), (device))
  FORWARD(int, getNumGPUs, (), ())
  FORWARD(void, deviceSynchronize, (DeviceIndex device), (device))
};

#undef FORWARD

}  // namespace

bool is_cuda_build() {
  return at::CUDAHooksRegistry()->Has("CUDAHooks");
}

void yield_cuda_while(bool (*yields)()) {
  if (!is_cuda_build() || delegate() != nullptr) return;
  static_assert(sizeof(CUDAHooksInterface) == sizeof(YieldingCudaHooks));
  delegate() = at::CUDAHooksRegistry()->Create("CUDAHooks", at::CUDAHooksArgs{});
  yields_now = yields;
  const CUDAHooksInterface& found = at::detail::getCUDAHooks();
  new (const_cast<CUDAHooksInterface*>(&found)) YieldingCudaHooks();
  // Through PyTorch's own pointer, as all of PyTorch's calls.
  const auto* now = dynamic_cast<const YieldingCudaHooks*>(&at::detail::getCUDAHooks());
  TORCH_INTERNAL_ASSERT(now != nullptr, "PyTorch's CUDA hooks could not be decorated");
}

}  // namespace xpurt

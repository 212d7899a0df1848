#include "lanes/kernels.h"

#include <ATen/Version.h>

#include <string_view>

namespace xpurt {
namespace {

const Kernels* chosen() {
#if defined(__x86_64__)
  const std::string_view name = at::get_cpu_capability();
  if (name == "AVX512") return &kAvx512Kernels;
  if (name == "AVX2") return &kAvx2Kernels;
#endif
  return nullptr;
}

}  // namespace

const Kernels* lane_kernels() {
  static const Kernels* const kernels = chosen();
  return kernels;
}

}  // namespace xpurt

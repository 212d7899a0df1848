#include "layouts/layout_keys.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include <vector>

namespace xpurt {
namespace {

using c10::DispatchKey;

LayoutKeys chosen() {
  std::vector<DispatchKey> free;
  for (const auto key :
       {DispatchKey::AutocastXLA, DispatchKey::AutocastHPU, DispatchKey::AutocastIPU}) {
    if (!c10::Dispatcher::singleton().hasBackendFallbackForDispatchKey(key)) {
      free.push_back(key);
    }
  }
  TORCH_CHECK_NOT_IMPLEMENTED(
      free.size() > 1,
      "xpurt.autocast with a layout needs two Autocast keys of device types that the "
      "process does not use, of XLA, HPU and IPU; found ",
      free.size(), ". Use torch.autocast, or fewer device types in one process.");
  return {free[0], free[1], c10::DispatchKeySet({free[0], free[1]})};
}

}  // namespace

const LayoutKeys& layout_keys() {
  static const LayoutKeys keys = chosen();
  return keys;
}

}  // namespace xpurt

#include "layouts/layout_keys.h"

#include <ATen/core/dispatch/Dispatcher.h>

namespace xpurt {
namespace {

using c10::DispatchKey;

LayoutKeys chosen() {
  std::vector<DispatchKey> keys;
  std::vector<std::string> types;
  const auto add_if_free = [&](DispatchKey key, const char* type) {
    auto& dispatcher = c10::Dispatcher::singleton();
    if (keys.size() == 2 || dispatcher.hasBackendFallbackForDispatchKey(key)) return;
    keys.push_back(key);
    types.emplace_back(type);
  };
  add_if_free(DispatchKey::AutocastXLA, "xla");
  add_if_free(DispatchKey::AutocastHPU, "hpu");
  add_if_free(DispatchKey::AutocastIPU, "ipu");
  TORCH_CHECK_NOT_IMPLEMENTED(
      keys.size() == 2,
      "xpurt.autocast with a layout needs two Autocast keys of device types that the "
      "process does not use, of XLA, HPU and IPU; found ",
      keys.size(), ". Use torch.autocast, or fewer device types in one process.");
  return {keys[0], keys[1], c10::DispatchKeySet({keys[0], keys[1]}), types};
}

}  // namespace

const LayoutKeys& layout_keys() {
  static const LayoutKeys keys = chosen();
  return keys;
}

}  // namespace xpurt

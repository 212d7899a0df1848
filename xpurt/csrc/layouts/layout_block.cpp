#include "layouts/layout_block.h"

#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>
#include <torch/csrc/jit/frontend/tracer.h>

#include <vector>

#include "layouts/layout_keys.h"
#include "layouts/ready_calls.h"
#include "layouts/temporary_layout.h"
#include "layouts/trained_convolutions.h"
#include "layouts/watched_weights.h"
#include "layouts/write_watch.h"

namespace xpurt {
namespace {

void include_keys(bool included) {
  const LayoutKeys& keys = layout_keys();
  c10::impl::tls_set_dispatch_key_included(keys.block, included);
  for (const auto key : {keys.block, keys.tensor}) {
    c10::impl::tls_set_dispatch_key_excluded(key, !included);
  }
}

// Those of this thread, the innermost last.
std::vector<LayoutBlock>& blocks() {
  thread_local std::vector<LayoutBlock> open;
  return open;
}

}  // namespace

const LayoutBlock* layout_block() {
  return blocks().empty() ? nullptr : &blocks().back();
}

size_t open_layout_blocks() {
  return blocks().size();
}

void begin_layout_block(std::optional<c10::DeviceType> type, OpsOfBlock asked) {
  if (blocks().empty()) include_keys(true);
  LayoutBlock block = blocks().empty() ? LayoutBlock{} : blocks().back();
  if (type != c10::DeviceType::XPU) block.cpu = asked;
  if (type != c10::DeviceType::CPU) block.xpu = asked;
  blocks().push_back(block);
}

void end_layout_block() {
  if (blocks().empty()) return;  // it was begun in another thread
  blocks().pop_back();
  if (!blocks().empty()) return;
  include_keys(false);
  forget_temporaries();
  forget_trained_weights();
  end_watches();
  forget_lost_calls();
  forget_lost_weights();
}

bool tensors_are_transformed() {
  return c10::impl::TorchDispatchModeTLS::any_modes_set() ||
         c10::impl::tls_is_dispatch_key_included(
             c10::DispatchKey::FuncTorchDynamicLayerFrontMode) ||
         torch::jit::tracer::isTracing();
}

}  // namespace xpurt

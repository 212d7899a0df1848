#include "layouts/layout_block.h"

#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>
#include <torch/csrc/jit/frontend/tracer.h>

#include "layouts/layout_keys.h"
#include "layouts/ready_calls.h"
#include "layouts/temporary_layout.h"
#include "layouts/trained_convolutions.h"
#include "layouts/watched_weights.h"

namespace xpurt {
namespace {

void include_keys(bool included) {
  const LayoutKeys& keys = layout_keys();
  c10::impl::tls_set_dispatch_key_included(keys.block, included);
  for (const auto key : {keys.block, keys.tensor}) {
    c10::impl::tls_set_dispatch_key_excluded(key, !included);
  }
}

}  // namespace

LayoutBlock& layout_block() {
  thread_local LayoutBlock block;
  return block;
}

void begin_layout_block() {
  if (layout_block().depth++ == 0) include_keys(true);
}

void end_layout_block() {
  if (--layout_block().depth > 0) return;
  include_keys(false);
  forget_temporaries();
  forget_ready_calls();
  forget_trained_weights();
  end_watches();
}

bool tensors_are_transformed() {
  return c10::impl::TorchDispatchModeTLS::any_modes_set() ||
         c10::impl::tls_is_dispatch_key_included(
             c10::DispatchKey::FuncTorchDynamicLayerFrontMode) ||
         torch::jit::tracer::isTracing();
}

}  // namespace xpurt

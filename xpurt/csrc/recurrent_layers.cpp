// LSTM and GRU over padded sequences. PyTorch computes an LSTM of CPU tensors by one
// oneDNN primitive per layer and direction, and everything of xpu tensors step by step,
// an LSTM without gradients by a kernel that builds without XPU don't have. Here each
// layer and direction is one op, of LSTM and GRU. What that op does not take goes by
// the cells, with one product for the inputs of all steps.
#include <ATen/Context.h>
#include <ATen/FuncTorchTLS.h>
#include <ATen/autocast_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/gru_native.h>
#include <ATen/ops/lstm_native.h>
#include <ATen/ops/stack.h>
#include <c10/core/GradMode.h>
#include <torch/library.h>

#include <algorithm>
#include <tuple>
#include <vector>

#include "device.h"
#include "recurrent.h"
#include "row_kernel.h"

namespace xpurt {
namespace {

using at::Tensor;

// Weights of one layer in one direction. Without biases these are undefined, and so is
// the projection of the hidden state, which LSTMs may have.
struct LayerWeights {
  Tensor input, hidden, input_bias, hidden_bias, projection;
};

// What aten::lstm.input and aten::gru.input have in common.
struct Layers {
  Tensor input;
  at::TensorList states;  // (layers * directions, batch, size) each
  at::TensorList params;
  bool has_biases;
  int64_t layers;
  double dropout;
  bool train, bidirectional, batch_first;
  int64_t gates;

  bool is_lstm() const { return gates == 4; }
  int64_t directions() const { return bidirectional ? 2 : 1; }
  int64_t steps() const { return input.size(batch_first ? 1 : 0); }
  int64_t batch() const { return input.size(batch_first ? 0 : 1); }
  int64_t state_size() const { return states.front().size(2); }  // after projection
  int64_t hidden_size() const { return states.back().size(2); }  // of each gate
  bool projects() const { return state_size() != hidden_size(); }
  size_t params_per_layer() const {
    return 2 + (has_biases ? 2 : 0) + (projects() ? 1 : 0);
  }

  LayerWeights weights(int64_t index) const {
    const at::TensorList of =
        params.slice(index * params_per_layer(), params_per_layer());
    LayerWeights found{of[0], of[1], {}, {}, {}};
    if (has_biases) {
      found.input_bias = of[2];
      found.hidden_bias = of[3];
    }
    if (projects()) found.projection = of.back();
    return found;
  }
};

bool has_sizes(const Tensor& tensor, at::IntArrayRef sizes) {
  return tensor.sizes() == sizes;
}

bool fits(const LayerWeights& weights, const Layers& all, int64_t input_size) {
  const int64_t rows = all.gates * all.hidden_size();
  return has_sizes(weights.input, {rows, input_size}) &&
         has_sizes(weights.hidden, {rows, all.state_size()}) &&
         (!all.has_biases || (has_sizes(weights.input_bias, {rows}) &&
                              has_sizes(weights.hidden_bias, {rows}))) &&
         (!all.projects() ||
          has_sizes(weights.projection, {all.state_size(), all.hidden_size()}));
}

// Whether all is on one device, and of sizes that fit; what is not is for PyTorch's own
// function, which says what is wrong.
bool is_sound(const Layers& all) {
  const auto is_plain = [&](const Tensor& t) {
    return t.defined() && t.device() == all.input.device() &&
           t.layout() == c10::kStrided && t.scalar_type() == all.input.scalar_type() &&
           !t.unsafeGetTensorImpl()->is_python_dispatch() &&
           !t.unsafeGetTensorImpl()->has_symbolic_sizes_strides();
  };
  if (!is_plain(all.input) || !std::ranges::all_of(all.states, is_plain) ||
      !std::ranges::all_of(all.params, is_plain) || all.input.dim() != 3 ||
      all.input.numel() == 0) {
    return false;
  }
  const int64_t count = all.layers * all.directions();
  const auto fits_input = [&](const Tensor& state) {
    return state.dim() == 3 && state.size(0) == count && state.size(1) == all.batch();
  };
  if (!std::ranges::all_of(all.states, fits_input) ||
      all.params.size() != count * all.params_per_layer()) {
    return false;
  }
  for (int64_t i = 0; i < count; ++i) {
    const bool first = i < all.directions();
    const int64_t size =
        first ? all.input.size(2) : all.directions() * all.state_size();
    if (!fits(all.weights(i), all, size)) return false;
  }
  return true;
}

// The output of the last layer. `run` gives that of one layer in one direction, from an
// input (steps, batch, size): see Layers::weights for the index.
template <typename Run>
Tensor through_layers(const Layers& all, const Run& run) {
  Tensor between = all.batch_first ? all.input.transpose(0, 1) : all.input;
  for (int64_t layer = 0; layer < all.layers; ++layer) {
    const int64_t index = layer * all.directions();
    Tensor output = run(between, index, false);
    if (all.bidirectional)
      output = at::cat({output, run(between, index + 1, true)}, -1);
    const bool drops = all.dropout != 0 && all.train && layer + 1 < all.layers;
    between = drops ? at::dropout(output, all.dropout, true) : output;
  }
  return all.batch_first ? between.transpose(0, 1) : between;
}

bool asks_pytorch(const char* op) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(op, "").typed<bool()>().call();
}

// Whether PyTorch computes layers of CPU tensors of the type by oneDNN.
bool onednn_has(c10::ScalarType type) {
  static const bool bf16 = asks_pytorch("mkldnn::_is_mkldnn_bf16_supported");
  static const bool fp16 = asks_pytorch("mkldnn::_is_mkldnn_fp16_supported");
  if (!at::globalContext().userEnabledMkldnn()) return false;
  return type == c10::ScalarType::Float ||
         (type == c10::ScalarType::BFloat16 && bf16) ||
         (type == c10::ScalarType::Half && fp16 && !c10::GradMode::is_enabled());
}

// Whether torch.func or forward mode looks on: a formula of ours is for neither, and
// ops that PyTorch has formulas for do as well.
bool is_transformed(const Layers& all) {
  const auto is_dual = [](const Tensor& each) {
    return each.defined() && each._fw_grad(0).defined();
  };
  if (is_dual(all.input) || std::ranges::any_of(all.states, is_dual) ||
      std::ranges::any_of(all.params, is_dual)) {
    return true;
  }
  const auto& functorch = at::functorch::functorchTLSAccessor();
  if (functorch == nullptr) return false;
  try {
    functorch->checkSupportsCppAutogradFunction();
    return false;
  } catch (const c10::Error&) {
    return true;  // there is no question for it that does not throw
  }
}

bool goes_by_layers(const Layers& all) {
  const c10::ScalarType type = all.input.scalar_type();
  const c10::DeviceIndex index = all.input.device().index();
  const bool is_taken =
      all.is_lstm() ? onednn_has(type) : type == c10::ScalarType::Float;
  // Of whole layers PyTorch has a kernel for LSTMs alone.
  const bool has_policy =
      kernel_policy() != KernelPolicy::native ||
      (all.is_lstm() && ordinal(index).home_device().host_accessible);
  return is_taken && has_policy && !all.projects() &&
         ordinal(index).home_device().is_opencl &&
         // Cells are computed in the type of autocast.
         !at::autocast::is_autocast_enabled(c10::DeviceType::XPU) &&
         !is_transformed(all);
}

struct LayersResults {
  Tensor output, h, c;
};

LayersResults compute(const Layers& all) {
  const auto run = goes_by_layers(all) ? &recurrent_layer : &differentiable_layer;
  const bool lstm = all.is_lstm();
  std::vector<Tensor> h = all.states[0].unbind(0), c(h.size());
  if (lstm) {
    // oneDNN wants two states to be two tensors.
    const Tensor &first = all.states[0], &second = all.states[1];
    const bool same =
        first.has_storage() && second.has_storage() && second.is_alias_of(first);
    c = (same ? second.clone() : second).unbind(0);
  }
  LayersResults made;
  made.output = through_layers(all, [&](const Tensor& x, int64_t i, bool reverse) {
    const LayerWeights of = all.weights(i);
    RecurrentResults results =
        run({lstm, x, h[i], c[i], of.input, of.hidden, of.input_bias, of.hidden_bias,
             reverse, of.projection});
    h[i] = std::move(results.hy);
    c[i] = std::move(results.cy);
    return results.output;
  });
  made.h = at::stack(h);
  if (lstm) made.c = at::stack(c);
  return made;
}

std::vector<Tensor> detached(at::TensorList tensors) {
  std::vector<Tensor> found;
  found.reserve(tensors.size());
  for (const Tensor& each : tensors) found.push_back(each.detach());
  return found;
}

std::tuple<Tensor, Tensor, Tensor> lstm(const Tensor& input, at::TensorList hx,
                                        at::TensorList params, bool has_biases,
                                        int64_t layers, double dropout, bool train,
                                        bool bidirectional, bool batch_first) {
  const Layers all{input,   hx,    params,        has_biases,  layers,
                   dropout, train, bidirectional, batch_first, /*gates=*/4};
  if (hx.size() == 2 && is_sound(all)) {
    auto [output, h, c] = compute(all);
    return {std::move(output), std::move(h), std::move(c)};
  }
  // With gradients on PyTorch does not look for its kernel of xpu.
  if (c10::GradMode::is_enabled()) {
    return at::native::lstm(input, hx, params, has_biases, layers, dropout, train,
                            bidirectional, batch_first);
  }
  const at::AutoGradMode by_steps(true);
  return at::native::lstm(input.detach(), detached(hx), detached(params), has_biases,
                          layers, dropout, train, bidirectional, batch_first);
}

std::tuple<Tensor, Tensor> gru(const Tensor& input, const Tensor& hx,
                               at::TensorList params, bool has_biases, int64_t layers,
                               double dropout, bool train, bool bidirectional,
                               bool batch_first) {
  const Layers all{input,   hx,    params,        has_biases,  layers,
                   dropout, train, bidirectional, batch_first, /*gates=*/3};
  if (!is_sound(all)) {
    return at::native::gru(input, hx, params, has_biases, layers, dropout, train,
                           bidirectional, batch_first);
  }
  auto [output, h, c] = compute(all);
  return {std::move(output), std::move(h)};
}

TORCH_LIBRARY_IMPL(aten, AutogradXPU, m) {
  m.impl("lstm.input", &lstm);
  m.impl("gru.input", &gru);
}
TORCH_LIBRARY_IMPL(aten, XPU, m) {
  m.impl("lstm.input", &lstm);
  m.impl("gru.input", &gru);
}

}  // namespace
}  // namespace xpurt

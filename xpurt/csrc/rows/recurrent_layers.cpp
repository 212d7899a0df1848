// aten::lstm and aten::gru over padded sequences. PyTorch computes an LSTM of CPU
// tensors by one oneDNN primitive per layer and direction. It computes all layers of
// xpu tensors step by step; for an LSTM without gradients it calls a kernel that is
// missing from builds without XPU. Here each layer and direction of an LSTM or a GRU is
// one op. Layers that the op does not support are computed by the cells, with one
// product for the inputs of all steps.
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
#include <utility>
#include <vector>

#include "device/device.h"
#include "op/row_kernel.h"
#include "rows/recurrent_autograd.h"
#include "rows/recurrent_cells.h"

namespace xpurt {
namespace {

using at::Tensor;
using Tensors = std::vector<Tensor>;

// The arguments that aten::lstm.input and aten::gru.input have in common.
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
  int64_t count() const { return layers * directions(); }
  int64_t state_size() const { return states.front().size(2); }  // after projection
  int64_t hidden_size() const { return states.back().size(2); }  // of each gate
  bool projects() const { return state_size() != hidden_size(); }
  size_t params_per_layer() const {
    return 2 + (has_biases ? 2 : 0) + (projects() ? 1 : 0);
  }

  template <typename Predicate>
  bool any(const Predicate& of) const {
    return of(input) || std::ranges::any_of(states, of) ||
           std::ranges::any_of(params, of);
  }

  // The weights of one layer in one direction.
  RecurrentLayer weights(int64_t index) const {
    const at::TensorList of =
        params.slice(index * params_per_layer(), params_per_layer());
    RecurrentLayer found;
    found.weight_ih = of[0];
    found.weight_hh = of[1];
    if (has_biases) {
      found.bias_ih = of[2];
      found.bias_hh = of[3];
    }
    if (projects()) found.projection = of.back();
    found.reverse = index % directions() == 1;
    return found;
  }
};

// Whether all tensors are on one device, of one type and of matching sizes. If not,
// PyTorch's function is called, which raises the error.
bool is_sound(const Layers& all) {
  const Tensor& input = all.input;
  const auto is_odd = [&](const Tensor& t) {
    return !t.defined() || t.device() != input.device() ||
           t.layout() != c10::kStrided || t.scalar_type() != input.scalar_type() ||
           t.unsafeGetTensorImpl()->is_python_dispatch() ||
           t.unsafeGetTensorImpl()->has_symbolic_sizes_strides();
  };
  if (all.any(is_odd) || input.dim() != 3 || input.numel() == 0) return false;
  const auto has_sizes = [](const Tensor& tensor, at::IntArrayRef sizes) {
    return !tensor.defined() || tensor.sizes() == sizes;
  };
  const int64_t batch = input.size(all.batch_first ? 0 : 1);
  for (const Tensor& each : all.states) {
    if (each.dim() != 3 || !has_sizes(each, {all.count(), batch, each.size(2)})) {
      return false;
    }
  }
  if (all.params.size() != all.count() * all.params_per_layer()) return false;
  const int64_t state = all.state_size(), rows = all.gates * all.hidden_size();
  for (int64_t i = 0; i < all.count(); ++i) {
    const RecurrentLayer of = all.weights(i);
    const int64_t size =
        i < all.directions() ? input.size(2) : all.directions() * state;
    if (!has_sizes(of.weight_ih, {rows, size}) ||
        !has_sizes(of.weight_hh, {rows, state}) || !has_sizes(of.bias_ih, {rows}) ||
        !has_sizes(of.bias_hh, {rows}) ||
        !has_sizes(of.projection, {state, all.hidden_size()})) {
      return false;
    }
  }
  return true;
}

bool asks_pytorch(const char* op) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(op, "").typed<bool()>().call();
}

// Whether PyTorch computes layers of CPU tensors of this type by oneDNN.
bool onednn_has(c10::ScalarType type) {
  static const bool bf16 = asks_pytorch("mkldnn::_is_mkldnn_bf16_supported");
  static const bool fp16 = asks_pytorch("mkldnn::_is_mkldnn_fp16_supported");
  if (!at::globalContext().userEnabledMkldnn()) return false;
  return type == c10::ScalarType::Float ||
         (type == c10::ScalarType::BFloat16 && bf16) ||
         (type == c10::ScalarType::Half && fp16 && !c10::GradMode::is_enabled());
}

// Whether torch.func or forward-mode AD is active. They lack formulas for xpurt's ops,
// but have those of the cells.
bool is_transformed(const Layers& all) {
  if (all.any([](const Tensor& each) { return each._fw_grad(0).defined(); }))
    return true;
  const auto& functorch = at::functorch::functorchTLSAccessor();
  try {
    if (functorch != nullptr) functorch->checkSupportsCppAutogradFunction();
    return false;
  } catch (const c10::Error&) {
    return true;  // PyTorch has no check that does not throw
  }
}

bool goes_by_layers(const Layers& all) {
  const c10::ScalarType type = all.input.scalar_type();
  const PhysicalDevice& home = ordinal(all.input.device().index()).home_device();
  const bool is_taken =
      all.is_lstm() ? onednn_has(type) : type == c10::ScalarType::Float;
  // PyTorch has kernels of whole layers only for LSTMs.
  const bool has_policy = kernel_policy() != KernelPolicy::native ||
                          (all.is_lstm() && home.host_accessible);
  return is_taken && has_policy && !all.projects() && home.is_opencl &&
         // Under autocast, cells are computed in its type.
         !at::autocast::is_autocast_enabled(c10::DeviceType::XPU) &&
         !is_transformed(all);
}

// Returns the output, the hidden states and the cell states (undefined for a GRU).
std::tuple<Tensor, Tensor, Tensor> compute(const Layers& all) {
  const bool by_layers = goes_by_layers(all);
  Tensors h = all.states[0].unbind(0), c(h.size());
  if (all.is_lstm()) {
    // oneDNN requires that the two states do not share memory.
    const Tensor &first = all.states[0], &second = all.states[1];
    const bool same =
        first.has_storage() && second.has_storage() && second.is_alias_of(first);
    c = (same ? second.clone() : second).unbind(0);
  }
  Tensor between = all.batch_first ? all.input.transpose(0, 1) : all.input;
  for (int64_t i = 0; i < all.count();) {
    Tensors outputs;
    for (int64_t end = i + all.directions(); i < end; ++i) {
      RecurrentLayer layer = all.weights(i);
      layer.input = between;
      layer.hx = h[i];
      layer.cx = c[i];
      RecurrentResults made = by_layers ? recurrent_layer(std::move(layer))
                                        : layer_by_cells(layer, /*train=*/false);
      outputs.push_back(std::move(made.output));
      h[i] = std::move(made.hy);
      c[i] = std::move(made.cy);
    }
    between = all.bidirectional ? at::cat(outputs, -1) : outputs.front();
    if (all.dropout != 0 && all.train && i < all.count()) {
      between = at::dropout(between, all.dropout, true);
    }
  }
  if (all.batch_first) between = between.transpose(0, 1);
  return {between, at::stack(h), all.is_lstm() ? at::stack(c) : Tensor()};
}

Tensors detached(at::TensorList tensors) {
  Tensors found;
  for (const Tensor& each : tensors) found.push_back(each.detach());
  return found;
}

std::tuple<Tensor, Tensor, Tensor> lstm(const Tensor& input, at::TensorList hx,
                                        at::TensorList params, bool has_biases,
                                        int64_t layers, double dropout, bool train,
                                        bool bidirectional, bool batch_first) {
  const Layers all{input,   hx,    params,        has_biases,  layers,
                   dropout, train, bidirectional, batch_first, /*gates=*/4};
  if (hx.size() == 2 && is_sound(all)) return compute(all);
  // In grad mode PyTorch does not call its kernel for xpu.
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

void add_layers(torch::Library& m) {
  m.impl("lstm.input", &lstm);
  m.impl("gru.input", &gru);
}
TORCH_LIBRARY_IMPL(aten, AutogradXPU, m) {
  add_layers(m);
}
TORCH_LIBRARY_IMPL(aten, XPU, m) {
  add_layers(m);
}

}  // namespace
}  // namespace xpurt

// LSTM without gradients. PyTorch takes a kernel of whole layers for it on xpu, of
// which a build without XPU has none; with gradients on, it goes by the cells.
#include <ATen/ops/lstm_native.h>
#include <c10/core/GradMode.h>
#include <torch/library.h>

#include <tuple>
#include <vector>

namespace xpurt {
namespace {

using at::Tensor;

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
  if (c10::GradMode::is_enabled()) {
    return at::native::lstm(input, hx, params, has_biases, layers, dropout, train,
                            bidirectional, batch_first);
  }
  const at::AutoGradMode by_cells(true);
  return at::native::lstm(input.detach(), detached(hx), detached(params), has_biases,
                          layers, dropout, train, bidirectional, batch_first);
}

TORCH_LIBRARY_IMPL(aten, AutogradXPU, m) {
  m.impl("lstm.input", &lstm);
}
TORCH_LIBRARY_IMPL(aten, XPU, m) {
  m.impl("lstm.input", &lstm);
}

}  // namespace
}  // namespace xpurt

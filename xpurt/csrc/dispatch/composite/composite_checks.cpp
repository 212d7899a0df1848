// Composite ops whose checks or writes PyTorch leaves out for devices other than the
// CPU.
#include <ATen/native/Resize.h>
#include <ATen/ops/all.h>
#include <ATen/ops/ge.h>
#include <ATen/ops/le.h>
#include <ATen/ops/logical_and.h>
#include <ATen/ops/_assert_async.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/fft_fftfreq_native.h>
#include <ATen/ops/nanquantile_native.h>
#include <ATen/ops/quantile_native.h>
#include <ATen/ops/where.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>
#include <torch/library.h>

namespace xpurt {
namespace {

using at::Tensor;
using std::optional;

// PyTorch's function reads the values of `q` on the CPU alone. Elsewhere one out of
// range became a wrong index, or a number for nanquantile. The error comes at the next
// wait. In a graph that is traced, nothing is checked, as in PyTorch.
Tensor checked(const Tensor& q) {
  if (!q.is_xpu() || q.numel() == 0 || !q.is_floating_point() ||
      q.key_set().has(c10::DispatchKey::Python) || c10::impl::dispatch_mode_enabled()) {
    return q;
  }
  const Tensor valid = q.ge(0).logical_and(q.le(1));
  at::_assert_async(valid.all(), "quantile() q values must be in the range [0, 1]");
  return at::where(valid, q, 0);
}

using Quantile = Tensor (*)(const Tensor&, const Tensor&, optional<int64_t>, bool,
                            std::string_view);
using QuantileOut = Tensor& (*)(const Tensor&, const Tensor&, optional<int64_t>, bool,
                                std::string_view, Tensor&);

template <Quantile function>
Tensor of_range(const Tensor& self, const Tensor& q, optional<int64_t> dim,
                bool keepdim, std::string_view interpolation) {
  return function(self, checked(q), dim, keepdim, interpolation);
}

template <QuantileOut function>
Tensor& into_of_range(const Tensor& self, const Tensor& q, optional<int64_t> dim,
                      bool keepdim, std::string_view interpolation, Tensor& out) {
  return function(self, checked(q), dim, keepdim, interpolation, out);
}

// PyTorch's function writes to a result as if it were contiguous.
Tensor& fftfreq_out(int64_t n, double d, Tensor& out) {
  if (out.dim() == 1 && out.size(0) == n && out.is_contiguous()) {
    return at::native::fft_fftfreq_out(n, d, out);
  }
  Tensor whole = at::empty({n}, out.options());
  at::native::fft_fftfreq_out(n, d, whole);
  at::native::resize_output(out, whole.sizes());
  return out.copy_(whole);
}

void register_quantiles(torch::Library& m) {
  m.impl("quantile", TORCH_FN(of_range<&at::native::quantile>));
  m.impl("quantile.out", TORCH_FN(into_of_range<&at::native::quantile_out>));
  m.impl("nanquantile", TORCH_FN(of_range<&at::native::nanquantile>));
  m.impl("nanquantile.out", TORCH_FN(into_of_range<&at::native::nanquantile_out>));
}

TORCH_LIBRARY_IMPL(aten, AutogradXPU, m) {
  register_quantiles(m);
}
TORCH_LIBRARY_IMPL(aten, XPU, m) {
  register_quantiles(m);
  m.impl("fft_fftfreq.out", TORCH_FN(fftfreq_out));
}

}  // namespace
}  // namespace xpurt

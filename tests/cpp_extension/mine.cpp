// An extension as somebody else writes it: an op with a kernel of its own for xpu,
// and one that reads bytes on the host.
#include <ATen/ATen.h>
#include <pybind11/pybind11.h>
#include <torch/library.h>
#include <xpurt/opencl_kernel.h>
#include <xpurt/queue.h>

namespace {

xpurt::OpenClKernels scaled_kernel(R"(
kernel void scaled(global float* out, global const float* in, float factor) {
  const size_t i = get_global_id(0);
  out[i] = in[i] * factor;
})",
                                   "scaled");

at::Tensor scaled(const at::Tensor& in, double factor) {
  TORCH_CHECK(in.is_contiguous() && in.scalar_type() == at::kFloat,
              "a contiguous float32 tensor is wanted");
  at::Tensor out = at::empty_like(in);
  sycl::queue& queue = xpurt::current_queue(in.device().index());
  const sycl::kernel kernel = scaled_kernel.on(queue);
  queue.submit([&](sycl::handler& h) {
    h.set_args(out.mutable_data_ptr<float>(), in.const_data_ptr<float>(),
               static_cast<float>(factor));
    h.parallel_for(sycl::range<1>(in.numel()), kernel);
  });
  return out;
}

// Doubles the tensor where it is.
void twice_(at::Tensor& t) {
  sycl::queue& queue = xpurt::current_queue(t.device().index());
  const sycl::kernel kernel = scaled_kernel.on(queue);
  queue.submit([&](sycl::handler& h) {
    h.set_args(t.mutable_data_ptr<float>(), t.const_data_ptr<float>(), 2.0f);
    h.parallel_for(sycl::range<1>(t.numel()), kernel);
  });
}

at::Tensor broken(const at::Tensor& in) {
  static xpurt::OpenClKernels kernels("kernel void broken() { no_such(); }", "broken");
  kernels.on(xpurt::current_queue(in.device().index()));
  return in;
}

double first_on_host(const at::Tensor& in) {
  xpurt::current_queue(in.device().index()).wait();
  return *in.const_data_ptr<float>();
}

uintptr_t queue_address() {
  return reinterpret_cast<uintptr_t>(&xpurt::current_queue());
}

TORCH_LIBRARY(mine, m) {
  m.def("scaled(Tensor input, float factor) -> Tensor");
  m.def("twice_(Tensor(a!) t) -> ()");
  m.def("broken(Tensor input) -> Tensor");
  m.def("first_on_host(Tensor input) -> float");
}

TORCH_LIBRARY_IMPL(mine, XPU, m) {
  m.impl("scaled", &scaled);
  m.impl("twice_", &twice_);
  m.impl("broken", &broken);
  m.impl("first_on_host", &first_on_host);
}

}  // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("queue_address", &queue_address);
}

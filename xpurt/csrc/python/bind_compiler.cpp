// Compiled host code on xpu tensors.
#include <c10/core/DeviceGuard.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/utils/pybind.h>

#include "device/device.h"
#include "host/clock.h"
#include "host/gil.h"
#include "memory/cpu_allocator.h"
#include "native/alias.h"
#include "native/alias_storage.h"
#include "native/host_bytes.h"
#include "python/bind.h"
#include "schedule/explain.h"
#include "stream/capture.h"

namespace py = pybind11;

namespace xpurt {
namespace {

// Note [Compiled host code]
// ~~~~~~~~~~~~~~~~~~~~~~~~~
// A compiler for CPU tensors produced a function of a list of tensors. HostCode calls
// it with xpu tensors, as a native op is run: the function gets CPU tensors over the
// same bytes, once pending work on them is done. What it allocates is device memory, so
// a result becomes an xpu tensor by a change of its device, and temporaries come from
// the device's cache.
//
// Compiled code frees an input as soon as it has used it, so that the activations of a
// backward pass do not all live to its end. So a HostCode keeps no reference to an
// input. A CPU tensor over its bytes does, and ends with the compiled code's last use.
// The graph tells which inputs the function may return. These are kept: the caller gets
// the same tensor back, since autograd checks its version. A compiler may return a copy
// instead, in another memory format.
class HostCode {
 public:
  // written: positions of the inputs that `function` writes to, ascending.
  // on_device: for each output, whether it becomes a tensor of xpu:index. The other
  // outputs stay CPU tensors.
  // returned: for each output, the position of the input that it may be, or -1.
  HostCode(py::object function, c10::DeviceIndex index, std::vector<size_t> written,
           std::vector<bool> on_device, std::vector<int64_t> returned)
      : function_(std::move(function)),
        device_(c10::DeviceType::XPU, index),
        written_(std::move(written)),
        on_device_(std::move(on_device)),
        returned_(std::move(returned)) {}

  // Takes the inputs out of the list.
  py::list operator()(const py::list& inputs) const {
    TORCH_CHECK(!is_capturing(device_.index()),
                "compiled code for the host can't be recorded into an XPU graph. "
                "Capture the program without torch.compile.");
    TORCH_CHECK(host_reads(device_.index()),
                "this code was compiled for a device whose memory the host reads, and ",
                device_,
                " is another one now: the mapping has changed. Call "
                "torch.compiler.reset(), and compile again.");
    const c10::DeviceGuard guard(device_);
    HostWrites writes;
    const std::vector<Kept> kept = replace_inputs(inputs, &writes);
    if (C10_UNLIKELY(is_explaining())) return explained(inputs, kept);
    return replace_outputs(run(inputs), kept);
  }

 private:
  // An input that may be returned; undefined tensors for any other output.
  struct Kept {
    at::Tensor original;
    at::Tensor host;
  };

  // Replaces the xpu tensors of the list by CPU tensors. Returns, for each output, the
  // input that it may be.
  std::vector<Kept> replace_inputs(const py::list& inputs, HostWrites* writes) const {
    std::vector<std::pair<Py_ssize_t, at::Tensor>> tensors;
    tensors.reserve(inputs.size());
    for (Py_ssize_t i = 0; i < static_cast<Py_ssize_t>(inputs.size()); ++i) {
      PyObject* input = PyList_GET_ITEM(inputs.ptr(), i);
      if (!THPVariable_Check(input)) continue;
      const at::Tensor& tensor = THPVariable_Unpack(input);
      if (tensor.is_xpu()) tensors.emplace_back(i, tensor);
    }
    std::vector<Kept> kept(on_device_.size());
    const auto keep = [&](Py_ssize_t i, const Kept& input) {
      for (size_t output = 0; output < returned_.size(); ++output) {
        if (returned_[output] == i) kept[output] = input;
      }
    };
    {
      const WithoutGil waiting;
      Uses pending;
      for (auto& [i, tensor] : tensors) {
        TORCH_CHECK(tensor.device() == device_, "compiled for tensors of ", device_,
                    ", called with one of ", tensor.device());
        const bool is_written = std::ranges::binary_search(written_, i);
        ready_for_host(*tensor.storage().unsafeGetStorageImpl(),
                       tensor.unsafeGetTensorImpl(), is_written, writes, &pending);
        const Kept input{tensor, alias_of(tensor)};
        keep(i, input);
        tensor = input.host;
      }
      current_stream(device_.index()).wait_for(pending);
    }
    for (auto& [i, tensor] : tensors) {
      PyList_SetItem(inputs.ptr(), i, THPVariable_Wrap(std::move(tensor)));
    }
    return kept;
  }

  py::list explained(const py::list& inputs, const std::vector<Kept>& kept) const {
    const double begin_us = now_us();
    py::list outputs = run(inputs);
    explain_other("compiled graph", ordinal(device_.index()).home_device().name,
                  Tier::native, "compiled to native code", now_us() - begin_us);
    return replace_outputs(std::move(outputs), kept);
  }

  py::list run(const py::list& inputs) const {
    const ResultsOnDevice results(true);
    py::object outputs = function_(inputs);
    return py::isinstance<py::list>(outputs) ? py::list(std::move(outputs))
                                             : py::list(py::tuple(outputs));
  }

  // The xpu form of a tensor that the function returned.
  at::Tensor to_xpu(at::Tensor host) const {
    const c10::Storage& storage = host.unsafeGetTensorImpl()->unsafe_storage();
    c10::StorageImpl* impl = storage.unsafeGetStorageImpl();
    if (c10::StorageImpl* original = original_of(*impl)) {
      relabel(host, c10::Storage(
                        c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(original)));
      return host;
    }
    if (impl->device_type() == c10::DeviceType::CPU && !label_as(*impl, device_)) {
      // A constant of the compiled code, which the next call returns again.
      const ResultsOnDevice results(true);
      host = host.clone();
      label_as(*host.storage().unsafeGetStorageImpl(), device_);
    }
    relabel(host, c10::Storage(host.storage()));
    return host;
  }

  py::list replace_outputs(py::list outputs, const std::vector<Kept>& kept) const {
    TORCH_CHECK(outputs.size() == on_device_.size(), "compiled code returned ",
                outputs.size(), " outputs; ", on_device_.size(), " were expected");
    for (size_t i = 0; i < outputs.size(); ++i) {
      const auto at = static_cast<Py_ssize_t>(i);
      PyObject* output = PyList_GET_ITEM(outputs.ptr(), at);
      if (!THPVariable_Check(output)) continue;
      at::Tensor result = THPVariable_Unpack(output);
      if (kept[i].host.defined() && result.is_same(kept[i].host)) {
        result = kept[i].original;
      } else {
        // A CPU tensor stays one, in memory of the CPU.
        result = on_device_[i] ? to_xpu(std::move(result)) : result.clone();
      }
      PyList_SetItem(outputs.ptr(), at, THPVariable_Wrap(std::move(result)));
    }
    return outputs;
  }

  py::object function_;
  c10::Device device_;
  std::vector<size_t> written_;
  std::vector<bool> on_device_;
  std::vector<int64_t> returned_;
};

}  // namespace

void bind_compiler(py::module_& m) {
  m.def("host_reads", &host_reads);
  m.def("host_computes", &host_computes);
  m.def("is_host", [](c10::DeviceIndex index) { return ordinal(index).is_host(); });
  py::class_<HostCode>(m, "HostCode")
      .def(py::init<py::object, c10::DeviceIndex, std::vector<size_t>,
                    std::vector<bool>, std::vector<int64_t>>(),
           py::arg("function"), py::arg("index"), py::arg("written"),
           py::arg("on_device"), py::arg("returned"))
      .def("__call__", &HostCode::operator())
      // Inductor's word for a function that takes its inputs out of a list.
      .def_property_readonly("_boxed_call", [](const HostCode&) { return true; });
}

}  // namespace xpurt

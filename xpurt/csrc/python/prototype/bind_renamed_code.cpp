// Compiled code on tensors of a prototype.
#include <c10/core/DeviceGuard.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/utils/pybind.h>

#include <algorithm>
#include <set>

#include "prototype/prototype_calls.h"
#include "prototype/renamed_call.h"
#include "python/bind.h"

namespace py = pybind11;

namespace xpurt {
namespace {

const PrototypeDevice& known(c10::Device own) {
  const PrototypeDevice* found = prototype_device(own.type());
  TORCH_CHECK_VALUE(found != nullptr, own, " is not a prototype.");
  return *found;
}

// See Note [Graphs of renamed devices]. A compiler for tensors of the device behind
// produced a function of a list of tensors. RenamedCode calls it with tensors of the
// prototype, as one op is called there.
class RenamedCode {
 public:
  // written: positions of the inputs that `function` writes to, ascending.
  // on_device: for each output, whether it becomes a tensor of `own`.
  RenamedCode(py::object function, c10::Device own, std::vector<size_t> written,
              std::vector<bool> on_device)
      : function_(std::move(function)),
        own_(own),
        written_(std::move(written)),
        on_device_(std::move(on_device)),
        calls_(op_calls(known(own), "compiled graph", ComputedBy::device_behind)) {}

  // Takes the inputs out of the list.
  py::list operator()(const py::list& inputs) const {
    const CountedCall counted(calls_);
    const c10::DeviceGuard guard(own_);
    RenamedCall call(known(own_), own_);
    std::vector<at::Tensor> others;  // inputs that are not on the device
    for (size_t i = 0; i < inputs.size(); ++i) {
      const auto at = static_cast<Py_ssize_t>(i);
      PyObject* input = PyList_GET_ITEM(inputs.ptr(), at);
      if (!THPVariable_Check(input)) continue;
      const at::Tensor& tensor = THPVariable_Unpack(input);
      if (tensor.device().type() != own_.type()) {
        others.push_back(tensor);
        continue;
      }
      TORCH_CHECK(tensor.device() == own_, "compiled for tensors of ", own_,
                  ", called with one of ", tensor.device());
      const bool is_written = std::ranges::binary_search(written_, i);
      PyList_SetItem(inputs.ptr(), at,
                     THPVariable_Wrap(call.to_behind(tensor, is_written).toTensor()));
    }
    py::object returned = function_(inputs);
    py::list outputs = py::isinstance<py::list>(returned)
                           ? py::list(std::move(returned))
                           : py::list(py::tuple(returned));
    call.finish_arguments();
    replace_outputs(outputs, call, others);
    calls_.bytes_copied.fetch_add(call.bytes_copied(), std::memory_order_relaxed);
    return outputs;
  }

 private:
  void replace_outputs(py::list& outputs, RenamedCall& call,
                       const std::vector<at::Tensor>& others) const {
    TORCH_CHECK(outputs.size() == on_device_.size(), "compiled code returned ",
                outputs.size(), " outputs; ", on_device_.size(), " were expected");
    std::vector<at::Tensor> results(outputs.size());
    for (size_t i = 0; i < outputs.size(); ++i) {
      PyObject* output = PyList_GET_ITEM(outputs.ptr(), static_cast<Py_ssize_t>(i));
      if (THPVariable_Check(output)) results[i] = THPVariable_Unpack(output);
    }
    // Those of the CPU first: they may share memory with results of the device.
    for (const bool on_device : {false, true}) {
      for (size_t i = 0; i < results.size(); ++i) {
        if (!results[i].defined() || on_device_[i] != on_device) continue;
        at::Tensor made = on_device ? to_own(results[i], results, call, others)
                                    : to_other(results[i], others);
        PyList_SetItem(outputs.ptr(), static_cast<Py_ssize_t>(i),
                       THPVariable_Wrap(std::move(made)));
      }
    }
  }

  // An input, or a tensor with memory of its own.
  static at::Tensor to_other(const at::Tensor& result,
                             const std::vector<at::Tensor>& others) {
    const bool is_input = std::ranges::any_of(
        others, [&](const at::Tensor& each) { return each.is_same(result); });
    return is_input ? result : result.clone();
  }

  // Memory of an input that is not on the device, or of a constant of the compiled
  // code, stays there.
  static at::Tensor to_own(const at::Tensor& result,
                           const std::vector<at::Tensor>& results, RenamedCall& call,
                           const std::vector<at::Tensor>& others) {
    if (!result.has_storage()) return call.to_own(result).toTensor();
    const auto shares = [&](const at::Tensor& each) {
      return each.defined() && each.has_storage() &&
             each.storage().is_alias_of(result.storage());
    };
    const bool is_other = std::ranges::any_of(others, shares);
    std::set<const c10::TensorImpl*> sharing;
    for (const at::Tensor& each : results) {
      if (shares(each)) sharing.insert(each.unsafeGetTensorImpl());
    }
    const bool is_kept = !call.has_behind(result.storage()) &&
                         result.storage().use_count() > sharing.size();
    return call.to_own(is_other || is_kept ? result.clone() : result).toTensor();
  }

  py::object function_;
  c10::Device own_;
  std::vector<size_t> written_;
  std::vector<bool> on_device_;
  OpCalls& calls_;
};

}  // namespace

void bind_renamed_code(py::module_& m) {
  py::class_<RenamedCode>(m, "RenamedCode")
      .def(py::init([](py::object function, const std::string& type, int index,
                       std::vector<size_t> written, std::vector<bool> on_device) {
             const c10::Device own(c10::Device(type).type(),
                                   static_cast<c10::DeviceIndex>(index));
             return RenamedCode(std::move(function), own, std::move(written),
                                std::move(on_device));
           }),
           py::arg("function"), py::arg("type"), py::arg("index"), py::arg("written"),
           py::arg("on_device"))
      .def("__call__", &RenamedCode::operator())
      // Inductor's word for a function that takes its inputs out of a list.
      .def_property_readonly("_boxed_call", [](const RenamedCode&) { return true; });
  m.def("to_prototype",
        [](const at::Tensor& tensor, const std::string& type, int index) {
          const PrototypeDevice& device = known(c10::Device(type));
          const c10::Device own = device.own(static_cast<c10::DeviceIndex>(index));
          return RenamedCall(device, own).to_own(tensor).toTensor();
        });
  m.def("from_prototype", [](const at::Tensor& tensor) {
    RenamedCall call(known(tensor.device()), tensor.device());
    return call.to_behind(tensor, /*written=*/false).toTensor();
  });
}

}  // namespace xpurt

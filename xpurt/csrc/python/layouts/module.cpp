// The Python interface of autocast with a layout: see Note [Rooms of their own].
#include <pybind11/functional.h>
#include <pybind11/stl.h>
#include <torch/csrc/jit/python/pybind.h>
#include <torch/csrc/jit/python/pybind_utils.h>
#include <torch/csrc/utils/pybind.h>

#include "host/gil.h"
#include "layouts/block_operands.h"
#include "layouts/layout_block.h"
#include "layouts/layout_keys.h"
#include "layouts/operand_wishes.h"
#include "layouts/ready_calls.h"
#include "layouts/register_layouts.h"
#include "layouts/temporary_layout.h"
#include "layouts/watched_weights.h"
#include "python/from_python.h"

namespace py = pybind11;

namespace xpurt {
namespace {

// `compute` is called with the name of an op, and its arguments. It returns None where
// PyTorch computes.
LayoutOp computed_by(const py::function& compute) {
  auto* kept = new py::function(compute);  // for the process
  return [kept](const std::string& op,
                c10::ArrayRef<c10::IValue> arguments) -> std::optional<at::Tensor> {
    const WithGil held;
    return from_python([&]() -> std::optional<at::Tensor> {
      py::tuple given(arguments.size());
      for (size_t i = 0; i < arguments.size(); ++i) {
        given[i] = torch::jit::toPyObject(arguments[i]);
      }
      const py::object result = (*kept)(op, *given);
      if (result.is_none()) return std::nullopt;
      return result.cast<at::Tensor>();
    });
  };
}

// By argument: its type, "block" or None, and whether it is in channels last.
void register_operands(
    const std::string& op,
    const std::map<std::string, std::pair<py::object, bool>>& operands) {
  std::vector<OperandWish> wishes;
  for (const auto& [argument, wish] : operands) {
    const auto& [type, is_channels_last] = wish;
    OperandWish made{argument};
    if (py::isinstance<py::str>(type)) {
      made.type_of_block = true;
    } else if (!type.is_none()) {
      made.type = type.cast<c10::ScalarType>();
    }
    made.is_channels_last = is_channels_last;
    wishes.push_back(std::move(made));
  }
  register_operand_wishes(op, wishes);
}

// The op is one of a library, without an overload.
void keep_call(const char* name, const py::tuple& given) {
  BlockCall* call = BlockCall::current();
  if (call == nullptr) return;
  const auto op = c10::Dispatcher::singleton().findSchemaOrThrow(name, "");
  std::vector<c10::IValue> arguments(given.size());
  for (size_t i = 1; i < given.size(); ++i) {
    arguments[i] = torch::jit::toIValue(given[i], op.schema().arguments()[i].type());
  }
  call->keep(op, std::move(arguments));
}

void keep_op_itself(const at::Tensor& weight, const std::optional<at::Tensor>& bias) {
  if (BlockCall* call = BlockCall::current()) call->keep_itself(weight, bias);
}

std::optional<c10::DeviceType> type_of(const std::optional<std::string>& name) {
  if (!name) return std::nullopt;
  return c10::Device(*name).type();
}

std::pair<bool, bool> ops_of_block(const std::string& type) {
  const LayoutBlock* block = layout_block();
  const OpsOfBlock asked = block == nullptr ? OpsOfBlock{} : block->of(*type_of(type));
  return {asked.layout, asked.int8};
}

void begin_block(const std::optional<std::string>& type, bool layout, bool int8) {
  begin_layout_block(type_of(type), {layout, int8});
}

}  // namespace
}  // namespace xpurt

PYBIND11_MODULE(_layouts, m) {
  using namespace xpurt;
  m.def("register_kernels", [](const py::function& compute) {
    register_tensor_kernels();
    register_block_kernels(computed_by(compute));
  });
  m.def("types_of_keys", [] { return layout_keys().types; });
  m.def("register_operands", &register_operands);
  m.def("begin_block", &begin_block);
  m.def("end_block", &end_layout_block);
  m.def("tensors_are_transformed", &tensors_are_transformed);
  m.def("open_blocks", &open_layout_blocks);
  m.def("ops_of_block", &ops_of_block);
  m.def("note_temporary", &note_temporary);
  m.def("is_temporary", &is_temporary);
  m.def("make_plain", &make_plain);
  m.def("known_to_python", &known_to_python);
  m.def("keep_call", &keep_call);
  m.def("keep_op_itself", &keep_op_itself);
  m.def("type_in_block", &type_in_block);
  m.def("in_layout", &in_layout);
  m.def("images_in_layout", &images_in_layout);
  m.def("note_images", &note_images);
  m.def("fills_memory", &fills_memory);
  py::class_<WatchedWeight, std::shared_ptr<WatchedWeight>>(m, "WatchedWeight")
      .def("is_unwritten", &WatchedWeight::is_unwritten);
  m.def("watched_weight", &watched_weight);
  m.def("sampled_places", &sampled_places);
  m.def("count_temporaries", &count_temporaries);
}

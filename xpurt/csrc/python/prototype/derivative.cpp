#include "python/prototype/derivative.h"

#include <torch/csrc/jit/python/pybind_utils.h>
#include <torch/library.h>

#include <memory>

#include "host/gil.h"
#include "python/from_python.h"

namespace py = pybind11;

namespace xpurt {
namespace {

// Calls the function as PyTorch calls those of torch.library: without the last
// arguments that have their defaults.
class CallDerivative final : public c10::OperatorKernel {
 public:
  explicit CallDerivative(const py::function& function)
      : function_(*new py::function(function)) {}  // for the process

  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet,
                  torch::jit::Stack* stack) {
    const WithGil held;
    from_python([&] {
      const c10::FunctionSchema& schema = op.schema();
      std::vector<c10::IValue> given =
          torch::jit::pop(*stack, schema.arguments().size());
      py::list positional;
      py::dict named;
      size_t count = given.size();
      while (count > 0 && is_default(schema.arguments()[count - 1], given[count - 1])) {
        --count;
      }
      for (size_t i = 0; i < count; ++i) {
        const c10::Argument& argument = schema.arguments()[i];
        py::object value = torch::jit::toPyObject(std::move(given[i]));
        if (argument.kwarg_only()) {
          named[argument.name().c_str()] = value;
        } else {
          positional.append(value);
        }
      }
      push(op, function_(*positional, **named), stack);
    });
  }

 private:
  static bool is_default(const c10::Argument& argument, const c10::IValue& value) {
    return argument.default_value().has_value() && *argument.default_value() == value;
  }

  static void push(const c10::OperatorHandle& op, const py::object& made,
                   torch::jit::Stack* stack) {
    const auto& returns = op.schema().returns();
    if (returns.empty()) return;
    if (returns.size() == 1) {
      stack->push_back(torch::jit::toIValue(made, returns[0].type()));
      return;
    }
    const bool fits =
        py::isinstance<py::tuple>(made) && py::len(made) == returns.size();
    TORCH_CHECK_TYPE(fits, "the derivative of ", toString(op.operator_name()),
                     " has to return a tuple of ", returns.size(), " results");
    const auto results = py::reinterpret_borrow<py::tuple>(made);
    for (size_t i = 0; i < returns.size(); ++i) {
      stack->push_back(torch::jit::toIValue(results[i], returns[i].type()));
    }
  }

  py::function& function_;
};

}  // namespace

void register_derivative(const std::string& op, c10::DeviceType type,
                         const py::function& function) {
  const c10::DispatchKey key = c10::getAutogradKeyFromBackend(c10::toBackendComponent(
      c10::computeDispatchKey(c10::ScalarType::Float, c10::Layout::Strided, type)));
  auto* kept =
      new torch::Library(torch::Library::IMPL, "aten", key, __FILE__, __LINE__);
  kept->impl(op.c_str(), torch::CppFunction::makeFromBoxedFunctor(
                             std::make_unique<CallDerivative>(function)));
}

}  // namespace xpurt

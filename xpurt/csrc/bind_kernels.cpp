#include "bind.h"

#include <pybind11/stl.h>
#include <torch/csrc/Exceptions.h>

#include "gil.h"
#include "matmul_vectors.h"
#include "onednn_plans.h"
#include "op_record.h"
#include "program.h"
#include "row_spec.h"
#include "wider_types.h"

namespace py = pybind11;

namespace xpurt {
namespace {

// Runs Python code for C++ that is not Python's: what it throws travels through
// PyTorch's dispatcher as PyTorch's own carrier of Python exceptions.
template <typename Body>
auto from_python(Body body) {
  try {
    return body();
  } catch (py::error_already_set& error) {
    error.restore();
    python_error carrier;
    carrier.persist();
    throw carrier;
  }
}

py::dict as_dict(const DeviceTraits& traits) {
  py::dict result;
  result["sub_group"] = traits.sub_group;
  result["max_work_group"] = traits.max_work_group;
  result["local_memory"] = traits.local_memory;
  result["vector_width"] = traits.vector_width;
  return result;
}

void set_callbacks(const py::function& source, const py::function& failure) {
  // Leaked: called from any thread, at any time before the process ends.
  auto* make = new py::function(source);
  auto* fail = new py::function(failure);
  set_source_callback([make](const std::string& key, const DeviceTraits& traits) {
    return from_python([&] {
      auto [entry, text] =
          (*make)(key, as_dict(traits)).cast<std::pair<std::string, std::string>>();
      return KernelSource{entry, text};
    });
  });
  set_failure_callback([fail](const std::string& device, const KernelSource& source,
                              const std::string& log) {
    from_python([&] { (*fail)(device, source.entry, source.source, log); });
  });
}

void set_binaries(const py::function& load, const py::function& store) {
  auto* find = new py::function(load);  // leaked, as above
  auto* keep = new py::function(store);
  set_binary_callbacks(
      [find](const std::string& identity) {
        return from_python(
            [&] { return (*find)(py::bytes(identity)).cast<std::string>(); });
      },
      [keep](const std::string& identity, const std::string& binary) {
        from_python([&] { (*keep)(py::bytes(identity), py::bytes(binary)); });
      });
}

ComputeRule compute_rule(const std::string& name) {
  if (name == "common") return ComputeRule::common;
  if (name == "floating") return ComputeRule::floating;
  if (name == "self") return ComputeRule::self;
  if (name == "source") return ComputeRule::source;
  TORCH_CHECK(name == "widened", "no rule of computation is called ", name);
  return ComputeRule::widened;
}

ResultRule result_rule(const std::string& name) {
  if (name == "compute") return ResultRule::compute;
  if (name == "self") return ResultRule::self;
  if (name == "real") return ResultRule::real;
  TORCH_CHECK(name == "boolean", "no rule of results is called ", name);
  return ResultRule::boolean;
}

StepPart step_part(const std::string& name) {
  if (name == "own") return StepPart::own;
  if (name == "before") return StepPart::before_primitive;
  TORCH_CHECK(name == "after", "no part of a row is called ", name);
  return StepPart::after_primitive;
}

Step as_step(const py::handle& given) {
  Step step;
  step.over = given["over"].cast<std::string>();
  step.along = given["along"].cast<std::vector<std::string>>();
  step.lanes = given["lanes"].cast<bool>();
  step.faults = given["faults"].cast<bool>();
  step.share = given["share"].cast<std::array<int64_t, 2>>();
  step.reads = given["reads"].cast<std::vector<std::string>>();
  step.writes = given["writes"].cast<std::vector<std::string>>();
  step.part = step_part(given["part"].cast<std::string>());
  return step;
}

RowSpec as_spec(const py::dict& row) {
  RowSpec spec;
  spec.index = row["index"].cast<int>();
  spec.kind = row["kind"].cast<std::string>();
  spec.name = row["name"].cast<std::string>();
  spec.dtypes = row["dtypes"].cast<std::string>();
  spec.compute = compute_rule(row["compute"].cast<std::string>());
  spec.result = result_rule(row["result"].cast<std::string>());
  spec.flops = row["flops"].cast<double>();
  spec.cost_class = cost_class(row["cost_class"].cast<std::string>());
  spec.conditions = row["conditions"].cast<uint32_t>();
  spec.uses = row["uses"].cast<uint32_t>();
  spec.raises_on_zero = row["raises_on_zero"].cast<bool>();
  spec.raises_on_negative = row["raises_on_negative"].cast<bool>();
  spec.same_type = row["same_type"].cast<bool>();
  spec.zero_dim = row["zero_dim"].cast<uint32_t>();
  spec.leading = row["leading"].cast<int>();
  spec.raises_on_empty = row["raises_on_empty"].cast<bool>();
  spec.params = row["params"].cast<std::vector<std::string>>();
  spec.variants = row["variants"].cast<std::vector<std::string>>();
  spec.ignored = row["ignored"].cast<std::vector<std::string>>();
  for (const py::handle& step : row["steps"]) spec.steps.push_back(as_step(step));
  for (const py::handle& each : row["scratch"]) {
    spec.scratch.push_back(
        {each["name"].cast<std::string>(), each["like"].cast<std::string>(),
         each["integral"].cast<bool>(), each["dims"].cast<std::vector<int64_t>>(),
         each["copies"].cast<int>()});
  }
  for (const py::handle& each : row["results"]) {
    spec.results.push_back({each["type_of"].cast<std::vector<std::string>>(),
                            each["laid_out_like"].cast<std::string>(),
                            each["empty_without"].cast<std::string>()});
  }
  spec.begins_as = row["begins_as"].cast<std::string>();
  spec.contiguous = row["contiguous"].cast<std::vector<std::string>>();
  spec.rows = row["rows"].cast<std::vector<std::string>>();
  spec.dense = row["dense"].cast<std::vector<std::string>>();
  spec.like = row["like"].cast<std::string>();
  spec.overloads = row["overloads"].cast<std::vector<std::string>>();
  spec.draws = row["draws"].cast<bool>();
  spec.fault = row["fault"].cast<std::string>();
  spec.primitive = row["primitive"].cast<std::string>();
  return spec;
}

WiderRow as_wider(const py::dict& given) {
  const auto& types = c10::getStringToDtypeMap();
  WiderRow row{given["name"].cast<std::string>(), {}, given["on_cpu"].cast<bool>()};
  for (const auto& [from, to] :
       given["types"].cast<std::vector<std::pair<std::string, std::string>>>()) {
    row.types.emplace_back(types.at(from), types.at(to));
  }
  return row;
}

// The number of a row, and the op and the overload that it is bound to.
using Bound = std::tuple<int, std::string, std::string>;

std::vector<Bound> bound_overloads() {
  std::vector<Bound> bound;
  for_each_op_record([&](OpRecord& record) {
    const RowKernel* row = record.row.load(std::memory_order_acquire);
    if (row == nullptr) return;
    const c10::OperatorName& name = record.op.operator_name();
    bound.emplace_back(row->prior.row, name.name, name.overload_name);
  });
  return bound;
}

}  // namespace

void set_forms(const py::function& maker) {
  auto* make = new py::function(maker);  // leaked, as above
  set_form_maker([make](int row, const c10::OperatorName& name) {
    const WithGil gil;
    return from_python([&] {
      return c10::OperatorName(
          (*make)(row, name.name, name.overload_name).cast<std::string>(),
          name.overload_name);
    });
  });
}

void bind_kernels(py::module_& m) {
  py::module_ testing = m.def_submodule("testing");
  m.def("set_source_callbacks", &set_callbacks);
  m.def("set_form_maker", &set_forms);
  m.def("set_binary_callbacks", &set_binaries);
  m.def("add_rows", [](const std::vector<py::dict>& rows) {
    std::vector<RowSpec> specs;
    for (const py::dict& row : rows) specs.push_back(as_spec(row));
    add_rows(std::move(specs));
  });
  m.def("add_wider_types", [](const std::vector<py::dict>& rows) {
    std::vector<WiderRow> wider;
    for (const py::dict& row : rows) wider.push_back(as_wider(row));
    add_wider_types(wider);
  });
  m.def("bound_overloads", &bound_overloads);
  // For tests: builds a source for the device behind xpu:index.
  testing.def("build_kernel",
              [](int index, const std::string& entry, const std::string& source) {
                try {
                  const PhysicalDevice& device =
                      ordinal(static_cast<c10::DeviceIndex>(index)).home_device();
                  build_kernel(device, {entry, source}, traits(device).exact_division);
                } catch (python_error& error) {
                  error.restore();
                  throw py::error_already_set();
                }
              });
  // For tests: see there.
  testing.def("force_vector_width", &force_vector_width);
  testing.def("built_kernels", &built_kernels);
  testing.def("loaded_kernels", &loaded_kernels);
  testing.def("onednn_plans", [](int index) {
    const auto& on = ordinal(static_cast<c10::DeviceIndex>(index));
    return std::pair(onednn_plans_kept(on.home_device()), kMostOnednnPlans);
  });
}

}  // namespace xpurt

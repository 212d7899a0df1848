#include "python/bind.h"

#include <pybind11/stl.h>

#include <algorithm>

#include "host/fault_message.h"
#include "host/gil.h"
#include "native/wider_types.h"
#include "onednn/plans.h"
#include "op/op_record.h"
#include "program/program.h"
#include "python/from_python.h"
#include "rows/decomposed.h"
#include "rows/matmul_vectors.h"

namespace py = pybind11;

namespace xpurt {
namespace {

py::dict as_dict(const DeviceTraits& traits) {
  py::dict result;
  result["sub_group"] = traits.sub_group;
  result["has_wide_sub_groups"] = traits.has_wide_sub_groups;
  result["max_work_group"] = traits.max_work_group;
  result["local_memory"] = traits.local_memory;
  result["vector_width"] = traits.vector_width;
  return result;
}

void set_callbacks(const py::function& source, const py::function& failure) {
  // Leaked: called from any thread until the process ends.
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

RowFields as_fields(const py::dict& given, const std::string& owner);

template <typename Type>
bool holds(const py::sequence& list) {
  return std::all_of(list.begin(), list.end(),
                     [](const py::handle& each) { return py::isinstance<Type>(each); });
}

// Converts numbers, strings, dicts, and lists of these.
RowFields::Value as_value(const py::handle& given, const std::string& owner) {
  if (py::isinstance<py::bool_>(given)) return given.cast<bool>();
  if (py::isinstance<py::int_>(given)) return given.cast<int64_t>();
  if (py::isinstance<py::float_>(given)) return given.cast<double>();
  if (py::isinstance<py::str>(given)) return given.cast<std::string>();
  TORCH_CHECK_TYPE(py::isinstance<py::list>(given) || py::isinstance<py::tuple>(given),
                   owner, " is a ", py::str(py::type::of(given)).cast<std::string>(),
                   ": rows are described by bool, int, float, str, and lists of one "
                   "type");
  const auto list = given.cast<py::sequence>();
  if (holds<py::str>(list)) return given.cast<RowFields::Strings>();
  if (holds<py::int_>(list)) return given.cast<RowFields::Integers>();
  std::vector<RowFields> dicts;
  for (const py::handle& each : list) {
    TORCH_CHECK_TYPE(py::isinstance<py::dict>(each), owner,
                     " is a list, but none of str, int or dict alone");
    dicts.push_back(as_fields(each.cast<py::dict>(), owner));
  }
  return dicts;
}

RowFields as_fields(const py::dict& given, const std::string& owner) {
  RowFields fields(owner);
  for (const auto& [key, value] : given) {
    const auto name = key.cast<std::string>();
    fields.set(name, as_value(value, "\"" + name + "\" of " + owner));
  }
  return fields;
}

RowFields as_row(const py::dict& given) {
  const bool has_name = given.contains("name");
  return as_fields(given, has_name
                              ? "the row " + py::str(given["name"]).cast<std::string>()
                              : "a row without a name");
}

WiderRow as_wider(const py::dict& given) {
  const auto& types = c10::getStringToDtypeMap();
  WiderRow row{given["name"].cast<std::string>(),
               {},
               given["on_cpu"].cast<bool>(),
               given["powers_of_two"].cast<bool>()};
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
  m.def("number_of_message", &number_of_message);
  m.def("set_form_maker", &set_forms);
  m.def("set_binary_callbacks", &set_binaries);
  m.def("add_rows", [](const std::vector<py::dict>& rows) {
    std::vector<RowFields> fields;
    for (const py::dict& row : rows) fields.push_back(as_row(row));
    add_rows(std::move(fields));
  });
  m.def("add_wider_types", [](const std::vector<py::dict>& rows) {
    std::vector<WiderRow> wider;
    for (const py::dict& row : rows) wider.push_back(as_wider(row));
    add_wider_types(wider);
  });
  m.def("bound_overloads", &bound_overloads);
  // For tests: builds a source for the home device of xpu:index.
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
  // For tests: see rows/matmul_vectors.h.
  testing.def("force_vector_width", &force_vector_width);
  testing.def("built_kernels", &built_kernels);
  testing.def("loaded_kernels", &loaded_kernels);
  testing.def("onednn_plans", [](int index) {
    const auto& on = ordinal(static_cast<c10::DeviceIndex>(index));
    return std::pair(onednn_plans_kept(on.home_device()), kMaxOnednnPlans);
  });
}

}  // namespace xpurt

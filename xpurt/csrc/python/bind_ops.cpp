// Ops in Python: counts and policies.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <torch/csrc/jit/python/pybind_utils.h>

#include "device/device.h"
#include "dispatch/unboxed/unboxed_run.h"
#include "host/gil.h"
#include "native/unsafe_copies.h"
#include "onednn/activation.h"
#include "op/fallback_mode.h"
#include "op/meta_call.h"
#include "op/op_report.h"
#include "python/bind.h"

namespace py = pybind11;

namespace xpurt {
namespace {

template <typename Value, size_t n>
using Choices = std::array<std::pair<const char*, Value>, n>;

constexpr Choices<FallbackMode, 3> kFallbackModes{{{"warn", FallbackMode::warn},
                                                   {"silent", FallbackMode::silent},
                                                   {"error", FallbackMode::error}}};
constexpr Choices<KernelPolicy, 3> kPolicies{{{"auto", KernelPolicy::automatic},
                                              {"sycl", KernelPolicy::sycl},
                                              {"native", KernelPolicy::native}}};

template <typename Value, size_t n>
Value chosen(const Choices<Value, n>& choices, const std::string& name,
             const char* what) {
  std::string known;
  for (const auto& [text, value] : choices) {
    if (name == text) return value;
    known += std::string(known.empty() ? "" : ", ") + '"' + text + '"';
  }
  throw py::value_error(std::string(what) + " \"" + name +
                        "\" is unknown; it is one of " + known);
}

template <typename Value, size_t n>
const char* name_of(const Choices<Value, n>& choices, Value wanted) {
  for (const auto& [text, value] : choices) {
    if (value == wanted) return text;
  }
  return "";
}

constexpr Choices<CopyRule, 4> kCopyRules{{{"trusted", CopyRule::trusted},
                                           {"checked", CopyRule::checked},
                                           {"refused", CopyRule::refused},
                                           {"never", CopyRule::never}}};

std::vector<at::Tensor> meta_results(const std::string& name,
                                     const std::string& overload,
                                     const py::args& arguments,
                                     const py::kwargs& named) {
  const auto op =
      c10::Dispatcher::singleton().findSchemaOrThrow(name.c_str(), overload.c_str());
  const torch::jit::Stack stack = torch::jit::createStackForSchema(
      op.schema(), arguments, named, /*self=*/std::nullopt);
  const WithoutGil released;
  return meta_call(op, stack);
}

}  // namespace

void bind_ops(py::module_& m) {
  py::module_ testing = m.def_submodule("testing");
  testing.def("activation_names", &activation_names);
  m.def("meta_results", &meta_results, py::arg("name"), py::arg("overload"));
  m.def("op_report", [] {
    py::list rows;
    for (const OpReportRow& row : op_report()) {
      rows.append(py::make_tuple(row.op, kTierNames[static_cast<size_t>(row.tier)],
                                 row.device, row.calls, row.bytes_copied, row.seconds));
    }
    return rows;
  });
  m.def("reset_op_report", &reset_op_report);
  testing.def(
      "unboxed_ops", [] { return unboxed_ops(); },
      "The ops that are registered with their own signature and without a stack.");
  testing.def("direct_ops", [] { return direct_ops(); });
  testing.def("set_direct_forms", [](bool on) { uses_direct_forms = on; });
  m.def("set_fallback_mode", [](const std::string& name) {
    set_fallback_mode(chosen(kFallbackModes, name, "fallback mode"));
  });
  testing.def("fallback_mode", [] { return name_of(kFallbackModes, fallback_mode()); });
  m.def("set_kernel_policy", [](const std::string& name) {
    set_kernel_policy(chosen(kPolicies, name, "kernel policy"));
  });
  m.def("kernel_policy", [] { return name_of(kPolicies, kernel_policy()); });
  testing.def(
      "copy_verdict",
      [](const std::string& name, const std::string& overload) {
        const CopyVerdict verdict =
            copy_verdict(c10::Dispatcher::singleton()
                             .findSchemaOrThrow(name.c_str(), overload.c_str())
                             .schema());
        return std::pair(name_of(kCopyRules, verdict.rule), verdict.reason);
      },
      "The rule of Note [Ops on copies] for an op, and why it is refused.");
  testing.def("check_trusted_copies", &check_trusted_copies,
              "For tests: ops that are trusted on copies are checked as others are.");
  testing.def(
      "set_host_accessible",
      [](c10::DeviceIndex index, bool value) {
        const Ordinal& changed = ordinal(index);
        changed.devices[changed.home]->host_accessible = value;
      },
      "For tests: treats an ordinal's memory as one that the host cannot read, or "
      "can again. The device stays what it is.");
}

}  // namespace xpurt

// The Python interface of the extension.
#include <c10/util/Exception.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <torch/version.h>

#include "c10/cuda_build.h"
#include "c10/hooks.h"
#include "c10/profiler.h"
#include "cpu_tensors/device_call.h"
#include "device/device.h"
#include "device/device_uuid.h"
#include "device/host_tasks.h"
#include "device/open_contexts.h"
#include "dispatch/foreign_kernels.h"
#include "dispatch/registration.h"
#include "host/gil.h"
#include "host/vector_math.h"
#include "memory/allocator.h"
#include "memory/lazy_memory.h"
#include "memory/replica/replica.h"
#include "native/share.h"
#include "python/bind.h"
#include "python/index_errors.h"
#include "stream/stream.h"

namespace py = pybind11;

namespace xpurt {
namespace {

LiveMemory live_and_borrowed() noexcept {
  const LiveMemory own = live_memory();
  const BorrowedMemory borrowed = borrowed_memory();
  const LazilyBorrowed lazy = lazily_borrowed();
  return {own.storages + borrowed.storages + lazy.storages + device_calls_underway(),
          own.bytes + borrowed.bytes + lazy.bytes};
}

void bind_placement(py::module_& m) {
  m.def("set_placement_resolver", [](py::function resolver) {
    // Leaked: called from any thread until the process ends.
    auto* kept = new py::function(std::move(resolver));
    set_placement_resolver([kept] {
      const WithGil gil;
      (*kept)();
    });
  });
  m.def("install_placement", &install_placement, py::arg("mapping"),
        py::arg("ordinals"), py::arg("remark") = "", py::arg("overflows") = false);
  m.def("open_placement", &open_placement);
  m.def("refuse_forks", &refuse_forks);
  m.def("uninstall_placement", [] {
    synchronize_all();
    release_replicas();
    release_cached_memory();
    LiveMemory live;
    uninstall_placement([&live] {
      live = live_and_borrowed();
      return live.storages != 0;
    });
    return py::make_tuple(live.storages, live.bytes);
  });
  m.def("placement_epoch", &placement_epoch);
  m.def("live_memory", [] {
    const LiveMemory live = live_and_borrowed();
    return py::make_tuple(live.storages, live.bytes);
  });
  m.def("device_count", &device_count);
  m.def("device_uuid",
        [](DevicePointer device) { return py::bytes(device_uuid(device)); });
  m.def("in_bad_fork", &in_bad_fork);
  m.def("synchronize_all", &synchronize_all);
  m.def("set_guard_device_count", &set_guard_device_count);
  m.def("set_active", &set_active);
  m.def("is_active", &is_active);
  m.def("hide_accelerator", &hide_accelerator);
  m.def("is_cuda_build", &is_cuda_build);
  m.def("yield_cuda_to_xpu",
        [] { yield_cuda_while([] { return is_active() || is_hidden(); }); });
  m.def("prefer_cpu_kernel", &prefer_cpu_kernel);
  m.def("register_fallbacks", &register_fallbacks);
  m.def("fallbacks", [] { return py::capsule(&fallbacks(), kFallbacksCapsule); });
}

}  // namespace
}  // namespace xpurt

PYBIND11_MODULE(_C, m) {
  xpurt::translate_index_errors();
  m.attr("torch_version") = TORCH_VERSION;
  m.attr("sycl_version") = std::to_string(__SYCL_COMPILER_VERSION);
  xpurt::bind_locks(m);
  xpurt::bind_placement(m);
  xpurt::bind_compiled_kernel(m);
  xpurt::bind_compiler(m);
  xpurt::bind_cpu_kernels(m);
  xpurt::bind_device(m);
  xpurt::bind_distributed(m);
  xpurt::bind_lazy(m);
  xpurt::bind_learner(m);
  xpurt::bind_raw_pointers(m);
  xpurt::bind_memory(m);
  xpurt::bind_share(m);
  xpurt::bind_allocator(m);
  xpurt::bind_snapshot(m);
  xpurt::bind_stream(m);
  xpurt::bind_graph(m);
  xpurt::bind_ops(m);
  xpurt::bind_planning(m);
  xpurt::bind_policy(m);
  xpurt::bind_schedule(m);
  xpurt::register_remaining_ops();
  xpurt::watch_foreign_kernels();
  xpurt::bind_kernels(m);
  xpurt::repair_late_hooks();
  xpurt::register_profiler();
  xpurt::prepare_vector_math();
  xpurt::provide_host_task_threads();
}

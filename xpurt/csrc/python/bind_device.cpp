// Devices for torch.xpu: the current one, properties, initialization.
#include <ATen/Context.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <torch/csrc/Generator.h>
#include <torch/csrc/utils/device_lazy_init.h>
#include <torch/csrc/utils/pybind.h>

#include "device/autograd_threads.h"
#include "device/backward_thread.h"
#include "device/device.h"
#include "device/opencl_devices.h"
#include "python/bind.h"
#include "random/generator.h"

namespace py = pybind11;

namespace xpurt {
namespace {

namespace info = sycl::info::device;
namespace intel = sycl::ext::intel::info::device;

bool has_extension(const sycl::device& device, const std::string& name) {
  const auto extensions = device.get_info<info::extensions>();
  return std::ranges::find(extensions, name) != extensions.end();
}

// Adds `name` if the driver reports it. SYCL throws for a property that a device does
// not have.
template <typename Param>
void add_if(py::dict& facts, const char* name, const sycl::device& device,
            sycl::aspect aspect) {
  if (!device.has(aspect)) return;
  try {
    facts[name] = device.get_info<Param>();
  } catch (const sycl::exception&) {
    // Left out, as without the aspect.
  }
}

// What SYCL and OpenCL report. A field that the device does not have is omitted.
py::dict facts_of(const PhysicalDevice& physical) {
  using sycl::aspect;
  const sycl::device& device = physical.device;
  py::dict facts;
  facts["name"] = physical.name;
  facts["platform_name"] = device.get_platform().get_info<sycl::info::platform::name>();
  facts["vendor"] = device.get_info<info::vendor>();
  facts["driver_version"] = device.get_info<info::driver_version>();
  facts["version"] = device.get_info<info::version>();
  facts["type"] = physical.kind();
  facts["max_compute_units"] = device.get_info<info::max_compute_units>();
  facts["max_work_group_size"] = device.get_info<info::max_work_group_size>();
  facts["max_num_sub_groups"] = device.get_info<info::max_num_sub_groups>();
  facts["sub_group_sizes"] = device.get_info<info::sub_group_sizes>();
  facts["local_mem_size"] = device.get_info<info::local_mem_size>();
  facts["last_level_cache_size"] = device.get_info<info::global_mem_cache_size>();
  facts["total_memory"] = physical.total_memory;
  facts["has_fp16"] = physical.has_fp16;
  facts["has_fp64"] = physical.has_fp64;
  facts["has_atomic64"] = device.has(aspect::atomic64);
  facts["has_bfloat16_conversions"] =
      has_extension(device, "cl_intel_bfloat16_conversions");
  facts["has_subgroup_matrix_multiply_accumulate"] =
      has_extension(device, "cl_intel_subgroup_matrix_multiply_accumulate");
  facts["has_subgroup_matrix_multiply_accumulate_tensor_float32"] = has_extension(
      device, "cl_intel_subgroup_matrix_multiply_accumulate_tensor_float32");
  facts["has_subgroup_2d_block_io"] =
      has_extension(device, "cl_intel_subgroup_2d_block_io");
  facts["is_integrated_gpu"] = !physical.is_cpu && !physical.is_accelerator &&
                               device.has(aspect::ext_oneapi_is_integrated_gpu);

  add_if<intel::device_id>(facts, "device_id", device, aspect::ext_intel_device_id);
  add_if<intel::gpu_eu_count>(facts, "gpu_eu_count", device,
                              aspect::ext_intel_gpu_eu_count);
  add_if<intel::memory_clock_rate>(facts, "memory_clock_rate", device,
                                   aspect::ext_intel_memory_clock_rate);
  add_if<intel::memory_bus_width>(facts, "memory_bus_width", device,
                                  aspect::ext_intel_memory_bus_width);
  if (device.has(aspect::ext_intel_gpu_slices) &&
      device.has(aspect::ext_intel_gpu_subslices_per_slice)) {
    facts["gpu_subslice_count"] = device.get_info<intel::gpu_slices>() *
                                  device.get_info<intel::gpu_subslices_per_slice>();
  }
  if (device.has(aspect::ext_intel_device_info_uuid)) {
    const auto uuid = device.get_info<intel::uuid>();
    facts["uuid"] = py::bytes(reinterpret_cast<const char*>(uuid.data()), uuid.size());
  }
  try {
    namespace experimental = sycl::ext::oneapi::experimental::info::device;
    facts["architecture"] =
        static_cast<int64_t>(device.get_info<experimental::architecture>());
  } catch (const sycl::exception&) {
    // SYCL has no name for the device's architecture.
  }
  return facts;
}

py::list device_facts(c10::DeviceIndex index) {
  py::list result;
  const Ordinal& on = ordinal(index);
  for (const PhysicalDevice* each : on.devices) {
    // Under overflow, home is only memory.
    if (on.overflows && each == &on.home_device()) continue;
    result.append(facts_of(*each));
  }
  return result;
}

// A driver's text, which may be in any encoding.
py::object text_of(const std::string& bytes) {
  return py::reinterpret_steal<py::object>(PyUnicode_DecodeUTF8(
      bytes.data(), static_cast<Py_ssize_t>(bytes.size()), "replace"));
}

py::list opencl_facts() {
  std::vector<OpenCLDevice> devices;
  {
    const py::gil_scoped_release released;
    devices = opencl_devices();
  }
  py::list result;
  for (const OpenCLDevice& each : devices) {
    py::dict facts;
    facts["handle"] = each.handle;
    facts["platform"] = text_of(each.platform);
    facts["name"] = text_of(each.name);
    facts["version"] = text_of(each.version);
    facts["driver_version"] = text_of(each.driver_version);
    facts["extensions"] = text_of(each.extensions);
    facts["type"] = each.type;
    facts["svm"] = each.svm;
    facts["vendor_id"] = each.vendor_id;
    facts["address_bits"] = each.address_bits;
    facts["available"] = each.available;
    facts["has_compiler"] = each.has_compiler;
    result.append(facts);
  }
  return result;
}

c10::DeviceIndex checked_exchange(c10::DeviceIndex index) {
  if (index < 0) return -1;
  ordinal(index);
  return exchange_device(index);
}

// Whether a kernel on either ordinal can use the memory of the other.
bool can_access_peer(c10::DeviceIndex from, c10::DeviceIndex to) {
  const PhysicalDevice& device = ordinal(from).home_device();
  const PhysicalDevice& peer = ordinal(to).home_device();
  if (&device == &peer) return true;
  const auto sees = [](const PhysicalDevice& a, const PhysicalDevice& b) {
    return a.system_usm && b.host_accessible;
  };
  return sees(device, peer) && sees(peer, device);
}

void init() {
  placement();
  torch::utils::register_fork_handler_for_device_init(at::kXPU);
  at::globalContext().lazyInitDevice(at::kXPU);
}

py::object run_backward(const py::object& run, const py::tuple& arguments,
                        const py::dict& options) {
  const BackwardScope scope;
  return run(*arguments, **options);
}

}  // namespace

void bind_device(py::module_& m) {
  m.def("init", &init);
  m.def("drain_autograd_threads", &drain_autograd_threads);
  m.def("run_backward", &run_backward);
  m.def("set_backward_in_calling_thread", &set_backward_in_calling_thread);
  m.def("shown_multithreading", &shown_multithreading);
  m.def("show_multithreading", &show_multithreading);
  m.def("device_facts", &device_facts, py::arg("index"));
  m.def("opencl_devices", &opencl_facts);
  m.def("opencl_handle", &opencl_handle, py::arg("device"));
  m.def("current_device", &current_device);
  m.def("set_device", [](c10::DeviceIndex index) { checked_exchange(index); });
  m.def("exchange_device", &checked_exchange);
  m.def("maybe_exchange_device", [](c10::DeviceIndex index) {
    return index < 0 ? c10::DeviceIndex(-1) : exchange_device(index);
  });
  m.def("can_access_peer", &can_access_peer);
  m.def("default_generator", [](c10::DeviceIndex index) {
    return py::reinterpret_steal<py::object>(
        THPGenerator_Wrap(default_generator(index)));
  });
}

}  // namespace xpurt

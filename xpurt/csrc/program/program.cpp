#include "program/program.h"

#include <CL/cl.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <deque>
#include <sycl/backend/opencl.hpp>
#include <unordered_map>
#include <utility>

#include "host/gil.h"
#include "host/mutex.h"
#include "program/build_queue.h"
#include "program/program_build.h"

namespace xpurt {
namespace {

// Leaked: called from any thread until the process ends.
SourceCallback* make_source = nullptr;

// Kernels of one device. Leaked: see Note [Leaked on purpose].
struct Kernels {
  DeviceTraits traits;
  SharedMutex mutex{Rank::kernels};
  std::unordered_map<std::string, const sycl::kernel*> built;
  Mutex building{Rank::kernel_build};  // one build at a time
};

thread_local BuildWaits waits_for;

DeviceTraits find_traits(const PhysicalDevice& device) {
  DeviceTraits found;
  const sycl::device& d = device.device;
  found.max_work_group = d.get_info<sycl::info::device::max_work_group_size>();
  found.local_memory = d.get_info<sycl::info::device::local_mem_size>();
  found.vector_width =
      static_cast<int>(d.get_info<sycl::info::device::native_vector_width_float>());
  found.compute_units =
      static_cast<int>(d.get_info<sycl::info::device::max_compute_units>());
  const auto fp = d.get_info<sycl::info::device::single_fp_config>();
  found.exact_division =
      std::find(fp.begin(), fp.end(),
                sycl::info::fp_config::correctly_rounded_divide_sqrt) != fp.end();
  if (!device.is_opencl) return found;
  const cl_device_id id = sycl::get_native<kOpenCL>(d);
  size_t bytes = 0;
  clGetDeviceInfo(id, CL_DEVICE_EXTENSIONS, 0, nullptr, &bytes);
  std::string extensions(bytes, '\0');
  clGetDeviceInfo(id, CL_DEVICE_EXTENSIONS, bytes, extensions.data(), nullptr);
  const auto has = [&](const char* name) {
    return extensions.find(name) != std::string::npos;
  };
  if (has("cl_khr_subgroup_shuffle") && has("cl_intel_required_subgroup_size")) {
    const auto sizes = d.get_info<sycl::info::device::sub_group_sizes>();
    const auto has_size = [&](size_t lanes) {
      return lanes <= found.max_work_group &&
             std::find(sizes.begin(), sizes.end(), lanes) != sizes.end();
    };
    for (size_t wanted : {16, 32, 8, 64, 4}) {
      if (has_size(wanted)) {
        found.sub_group = static_cast<int>(wanted);
        break;
      }
    }
    found.has_wide_sub_groups = has_size(64);
  }
  return found;
}

Kernels& kernels_of(const PhysicalDevice& device) {
  static auto* const mutex = new Mutex(Rank::kernel_tables);
  static auto* const table = new std::deque<std::pair<const PhysicalDevice*, Kernels>>;
  static thread_local std::pair<const PhysicalDevice*, Kernels*> last{};
  if (last.first == &device) return *last.second;
  std::lock_guard<Mutex> lock(*mutex);
  for (auto& [owner, kernels] : *table) {
    if (owner == &device) {
      last = {&device, &kernels};
      return kernels;
    }
  }
  auto& made = table->emplace_back(std::piecewise_construct, std::tuple(&device),
                                   std::tuple<>());
  made.second.traits = find_traits(device);
  last = {&device, &made.second};
  return made.second;
}

}  // namespace

void set_source_callback(SourceCallback source) {
  make_source = new SourceCallback(std::move(source));
}

const DeviceTraits& traits(const PhysicalDevice& device) {
  return kernels_of(device).traits;
}

namespace {

const sycl::kernel* find_kernel(Kernels& kernels, const std::string& key) {
  std::shared_lock<SharedMutex> lock(kernels.mutex);
  const auto found = kernels.built.find(key);
  return found == kernels.built.end() ? nullptr : found->second;
}

// Called without the GIL: the building thread takes the GIL, so no thread that holds it
// may wait here.
const sycl::kernel& find_or_build(const PhysicalDevice& device,
                                  const std::string& key) {
  Kernels& kernels = kernels_of(device);
  std::lock_guard<Mutex> lock(kernels.building);
  if (const sycl::kernel* found = find_kernel(kernels, key)) return *found;
  TORCH_CHECK(make_source != nullptr,
              "xpurt's C++ library is loaded, but its Python package is not: no kernel "
              "can be built. Use `import xpurt`.");
  KernelSource source;
  call_python([&] { source = (*make_source)(key, kernels.traits); });
  const auto* made =
      new sycl::kernel(build_kernel(device, source, kernels.traits.exact_division));
  std::unique_lock<SharedMutex> write(kernels.mutex);
  kernels.built.emplace(key, made);
  return *made;
}

BuildQueue& build_queue() {
  static auto* const leaked =
      new BuildQueue([](const PhysicalDevice& device, const std::string& key) {
        find_or_build(device, key);
      });
  return *leaked;
}

}  // namespace

const sycl::kernel& kernel_for(const PhysicalDevice& device, const std::string& key) {
  if (const sycl::kernel* found = find_kernel(kernels_of(device), key)) return *found;
  // A build that failed in the other thread is repeated here, so that its error is
  // thrown.
  if (!waits_for.all && waits_for.device != &device &&
      build_queue().push(device, key)) {
    throw KernelIsBuilding(device);
  }
  WithoutGil released;
  return find_or_build(device, key);
}

WaitsForBuilds::WaitsForBuilds(BuildWaits waits)
    : before_(std::exchange(waits_for, waits)) {}
WaitsForBuilds::~WaitsForBuilds() {
  waits_for = before_;
}

size_t builds_pending() {
  return build_queue().pending();
}

void stop_builds() {
  if (!in_bad_fork()) build_queue().stop();
}

}  // namespace xpurt

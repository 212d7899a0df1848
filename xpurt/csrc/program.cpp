#include "program.h"

#include <CL/cl.h>
#include <c10/util/Exception.h>
#include <torch/csrc/Exceptions.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <mutex>
#include <shared_mutex>
#include <sycl/backend/opencl.hpp>
#include <unordered_map>

#include "gil.h"

namespace xpurt {
namespace {

constexpr auto kOpenCL = sycl::backend::opencl;
constexpr const char* kOptions = "-cl-std=CL3.0";
// Float division and sqrt as IEEE has them, which is what PyTorch computes.
constexpr const char* kExactDivision = " -cl-fp32-correctly-rounded-divide-sqrt";

struct Callbacks {
  SourceCallback source;
  FailureCallback failure;
};
Callbacks& callbacks() {
  static Callbacks* const leaked = new Callbacks;
  return *leaked;
}

// Kernels of one device. Leaked: see Note [Leaked on purpose].
struct Kernels {
  DeviceTraits traits;
  std::shared_mutex mutex;
  std::unordered_map<std::string, const sycl::kernel*> built;
};

std::mutex build_mutex;
std::atomic<size_t> build_count{0};

DeviceTraits find_traits(const PhysicalDevice& device) {
  DeviceTraits found;
  const sycl::device& d = device.device;
  found.max_work_group = d.get_info<sycl::info::device::max_work_group_size>();
  found.local_memory = d.get_info<sycl::info::device::local_mem_size>();
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
    for (size_t wanted : {16, 32, 8}) {
      if (std::find(sizes.begin(), sizes.end(), wanted) != sizes.end()) {
        found.sub_group = static_cast<int>(wanted);
        break;
      }
    }
  }
  return found;
}

Kernels& kernels_of(const PhysicalDevice& device) {
  static std::mutex* const mutex = new std::mutex;
  static auto* const table = new std::deque<std::pair<const PhysicalDevice*, Kernels>>;
  static thread_local std::pair<const PhysicalDevice*, Kernels*> last{};
  if (last.first == &device) return *last.second;
  std::lock_guard<std::mutex> lock(*mutex);
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

// Runs `body`, which may call Python, under the GIL.
template <typename Body>
void with_gil(Body body) {
  // The mutex of the builds is held here: see Note [Python ends first].
  TORCH_CHECK(!python_ends(), "Python ends: no kernel can be built any more");
  const WithGil gil;
  body();
}

struct ProgramOwner {
  cl_program program;
  explicit ProgramOwner(cl_program p) : program(p) {}
  ~ProgramOwner() { clReleaseProgram(program); }
  ProgramOwner(const ProgramOwner&) = delete;
  ProgramOwner& operator=(const ProgramOwner&) = delete;
};

std::string build_log(cl_program program, cl_device_id device) {
  size_t bytes = 0;
  clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, 0, nullptr, &bytes);
  std::string log(bytes, '\0');
  clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, bytes, log.data(),
                        nullptr);
  while (!log.empty() && (log.back() == '\0' || log.back() == '\n')) log.pop_back();
  return log;
}

[[noreturn]] void fail(const PhysicalDevice& device, const KernelSource& source,
                       const std::string& log) {
  if (callbacks().failure) {
    with_gil([&] { callbacks().failure(device.name, source, log); });
  }
  TORCH_CHECK(false, "kernel ", source.entry, " does not build for ", device.name,
              ":\n", log, "\n", source.source);
}

}  // namespace

void set_source_callbacks(SourceCallback source, FailureCallback failure) {
  callbacks() = {std::move(source), std::move(failure)};
}

const DeviceTraits& traits(const PhysicalDevice& device) {
  return kernels_of(device).traits;
}

sycl::kernel build_kernel(const PhysicalDevice& device, const KernelSource& source) {
  const cl_context context = sycl::get_native<kOpenCL>(device.context);
  const cl_device_id id = sycl::get_native<kOpenCL>(device.device);
  const char* text = source.source.c_str();
  cl_int status = CL_SUCCESS;
  cl_program made = clCreateProgramWithSource(context, 1, &text, nullptr, &status);
  TORCH_CHECK(status == CL_SUCCESS, "clCreateProgramWithSource failed with ", status,
              " for ", source.entry, " on ", device.name);
  ProgramOwner program(made);
  std::string options = kOptions;
  if (traits(device).exact_division) options += kExactDivision;
  status = clBuildProgram(made, 1, &id, options.c_str(), nullptr, nullptr);
  if (status != CL_SUCCESS) fail(device, source, build_log(made, id));
  cl_kernel kernel = clCreateKernel(made, source.entry.c_str(), &status);
  if (status != CL_SUCCESS) {
    fail(device, source,
         "clCreateKernel failed with " + std::to_string(status) + ": no kernel " +
             source.entry);
  }
  sycl::kernel result = sycl::make_kernel<kOpenCL>(kernel, device.context);
  ++build_count;
  return result;
}

const sycl::kernel& kernel_for(const PhysicalDevice& device, const std::string& key) {
  Kernels& kernels = kernels_of(device);
  const auto find = [&]() -> const sycl::kernel* {
    std::shared_lock<std::shared_mutex> lock(kernels.mutex);
    const auto found = kernels.built.find(key);
    return found == kernels.built.end() ? nullptr : found->second;
  };
  if (const sycl::kernel* found = find()) return *found;
  // The thread that builds takes the GIL, so nobody may wait for it holding that.
  WithoutGil released;
  std::lock_guard<std::mutex> lock(build_mutex);
  if (const sycl::kernel* found = find()) return *found;
  TORCH_CHECK(callbacks().source,
              "xpurt's C++ library is loaded, but its Python package is not: no kernel "
              "can be built. Use `import xpurt`.");
  KernelSource source;
  with_gil([&] { source = callbacks().source(key, kernels.traits); });
  const auto* made = new sycl::kernel(build_kernel(device, source));
  std::unique_lock<std::shared_mutex> write(kernels.mutex);
  kernels.built.emplace(key, made);
  return *made;
}

size_t built_kernels() noexcept {
  return build_count.load();
}

}  // namespace xpurt

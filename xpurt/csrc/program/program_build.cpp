#include "program/program_build.h"

#include <CL/cl.h>
#include <c10/util/Exception.h>

#include <atomic>
#include <chrono>
#include <sycl/backend/opencl.hpp>
#include <utility>

#include "device/opencl_devices.h"
#include "host/gil.h"

namespace xpurt {
namespace {

constexpr const char* kStandard = "-cl-std=";
constexpr const char* kExactDivision = " -cl-fp32-correctly-rounded-divide-sqrt";
// No kernel of a row finds an address in memory, or uses an argument that is null. So
// the layer USM on SVM need not list all memory for them, where each entry costs a
// microsecond of each run with NVIDIA's driver, and may set another address for null.
constexpr const char* kArgumentsOnly = " -DXPURT_ARGUMENTS_ONLY";

struct Callbacks {
  FailureCallback failure;
  LoadCallback load;
  StoreCallback store;
};
Callbacks& callbacks() {
  static Callbacks* const leaked = new Callbacks;
  return *leaked;
}

std::atomic<size_t> build_count{0};
std::atomic<size_t> load_count{0};

// For a compilation by the driver. A kernel from the disk cache takes 2 ms.
constexpr double kFirstBuildUs = 100e3;
std::atomic<double> build_us{kFirstBuildUs};

thread_local Refusal refusal;

struct ProgramOwner {
  cl_program program;
  explicit ProgramOwner(cl_program p) : program(p) {}
  ProgramOwner(ProgramOwner&& other) noexcept
      : program(std::exchange(other.program, nullptr)) {}
  ProgramOwner& operator=(ProgramOwner&& other) noexcept {
    std::swap(program, other.program);
    return *this;
  }
  ~ProgramOwner() {
    if (program != nullptr) clReleaseProgram(program);
  }
};

// One device, in the context in which its programs are made.
struct Target {
  cl_context context;
  cl_device_id id;
  std::string options;
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
  refusal = {refusal.count + 1, &device, source.entry, log};
  if (callbacks().failure) {
    call_python([&] { callbacks().failure(device.name, source, log); });
  }
  TORCH_CHECK(false, "kernel ", source.entry, " does not build for ", device.name,
              ":\n", log, "\n", source.source);
}

std::string device_info(cl_device_id id, cl_device_info what) {
  size_t bytes = 0;
  if (clGetDeviceInfo(id, what, 0, nullptr, &bytes) != CL_SUCCESS) return "?";
  std::string text(bytes, '\0');
  clGetDeviceInfo(id, what, bytes, text.data(), nullptr);
  return text;
}

// All that the binary of a source depends on.
std::string identity_of(const Target& target, const KernelSource& source) {
  std::string text;
  for (const cl_device_info what :
       {CL_DEVICE_VENDOR, CL_DEVICE_NAME, CL_DEVICE_VERSION, CL_DRIVER_VERSION,
        CL_DEVICE_EXTENSIONS, CL_DEVICE_DOUBLE_FP_CONFIG,
        CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT}) {
    text += device_info(target.id, what) + '\n';
  }
  return text + target.options + '\n' + source.source;
}

// The program of a binary; of nullptr if this driver cannot use the binary.
ProgramOwner program_of(const std::string& binary, const Target& target) {
  if (binary.empty()) return ProgramOwner(nullptr);
  const size_t bytes = binary.size();
  const auto* data = reinterpret_cast<const unsigned char*>(binary.data());
  cl_int of_binary = CL_SUCCESS, status = CL_SUCCESS;
  ProgramOwner made(clCreateProgramWithBinary(target.context, 1, &target.id, &bytes,
                                              &data, &of_binary, &status));
  if (status != CL_SUCCESS || of_binary != CL_SUCCESS ||
      clBuildProgram(made.program, 1, &target.id, target.options.c_str(), nullptr,
                     nullptr) != CL_SUCCESS) {
    return ProgramOwner(nullptr);
  }
  return made;
}

// The program of an earlier process's binary, if there is one.
ProgramOwner load_program(const Target& target, const std::string& identity) {
  std::string binary;
  if (callbacks().load) call_python([&] { binary = callbacks().load(identity); });
  return program_of(binary, target);
}

std::string binary_of(cl_program program) {
  size_t bytes = 0;
  clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof(bytes), &bytes, nullptr);
  std::string binary(bytes, '\0');
  char* into = binary.data();
  const cl_int status =
      clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof(into), &into, nullptr);
  return status == CL_SUCCESS ? binary : std::string();
}

ProgramOwner compile_program(const PhysicalDevice& device, const Target& target,
                             const KernelSource& source, const std::string& identity) {
  const char* text = source.source.c_str();
  cl_int status = CL_SUCCESS;
  ProgramOwner made(
      clCreateProgramWithSource(target.context, 1, &text, nullptr, &status));
  TORCH_CHECK(status == CL_SUCCESS, "clCreateProgramWithSource failed with ", status,
              " for ", source.entry, " on ", device.name);
  status = clBuildProgram(made.program, 1, &target.id, target.options.c_str(), nullptr,
                          nullptr);
  if (status != CL_SUCCESS) fail(device, source, build_log(made.program, target.id));
  const std::string binary = binary_of(made.program);
  if (callbacks().store && !binary.empty()) {
    call_python([&] { callbacks().store(identity, binary); });
  }
  // A program from source keeps its compiler's memory. In Intel's CPU runtime this is
  // 3.4 MB per kernel; a program from its binary has 0.5 MB.
  ProgramOwner small = program_of(binary, target);
  return small.program != nullptr ? std::move(small) : std::move(made);
}

// The first build shows whether the disk cache is warm. Later builds count half.
void record_build(std::chrono::duration<double, std::micro> took) {
  const double before = build_us.load();
  build_us = build_count++ == 0 ? took.count() : (before + took.count()) / 2;
}

}  // namespace

void set_failure_callback(FailureCallback failure) {
  callbacks().failure = std::move(failure);
}

void set_binary_callbacks(LoadCallback load, StoreCallback store) {
  callbacks().load = std::move(load);
  callbacks().store = std::move(store);
}

sycl::kernel build_kernel(const PhysicalDevice& device, const KernelSource& source,
                          bool exact_division) {
  const auto begin = std::chrono::steady_clock::now();
  const cl_device_id id = sycl::get_native<kOpenCL>(device.device);
  const Target target{sycl::get_native<kOpenCL>(device.context), id,
                      kStandard + opencl_c_standard(reinterpret_cast<uintptr_t>(id)) +
                          (exact_division ? kExactDivision : "") + kArgumentsOnly};
  const std::string identity = identity_of(target, source);
  ProgramOwner program = load_program(target, identity);
  const bool loaded = program.program != nullptr;
  if (!loaded) program = compile_program(device, target, source, identity);
  cl_int status = CL_SUCCESS;
  cl_kernel kernel = clCreateKernel(program.program, source.entry.c_str(), &status);
  if (status != CL_SUCCESS) {
    fail(device, source,
         "clCreateKernel failed with " + std::to_string(status) + ": no kernel " +
             source.entry);
  }
  record_build(std::chrono::steady_clock::now() - begin);
  if (loaded) ++load_count;
  return sycl::make_kernel<kOpenCL>(kernel, device.context);
}

const Refusal& last_refusal() noexcept {
  return refusal;
}

double expected_build_us() noexcept {
  return build_us.load();
}

size_t built_kernels() noexcept {
  return build_count.load();
}

size_t loaded_kernels() noexcept {
  return load_count.load();
}

void call_python(const std::function<void()>& body) {
  // The mutex of the builds is held here: see Note [Python ends first].
  TORCH_CHECK(!python_ends(), "Python ends: no kernel can be built any more");
  const WithGil gil;
  body();
}

}  // namespace xpurt

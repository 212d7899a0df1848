// For C++ extensions: a kernel in OpenCL C as a sycl::kernel, for extensions without a
// SYCL compiler.
//
//   static xpurt::OpenClKernels twice(R"(
//     kernel void twice(global float* x) { x[get_global_id(0)] *= 2; })", "twice");
//   queue.submit([&](sycl::handler& h) {
//     h.set_args(t.data_ptr<float>());
//     h.parallel_for(sycl::range<1>(t.numel()), twice.on(queue));
//   });
#pragma once

#include <CL/cl.h>
#include <c10/util/Exception.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <sycl/backend/opencl.hpp>
#include <sycl/sycl.hpp>
#include <utility>

namespace xpurt {

// One kernel, built once for each device and context that it is used in.
class OpenClKernels {
 public:
  // options: of the compiler; by default OpenCL C 3.0, or 1.2 on an older device.
  OpenClKernels(std::string source, std::string entry, std::string options = "")
      : source_(std::move(source)),
        entry_(std::move(entry)),
        options_(std::move(options)) {}

  // The kernel for the device of `queue`. Throws c10::Error with the driver's log and
  // the source if it does not build for that device.
  sycl::kernel on(const sycl::queue& queue) {
    std::lock_guard<std::mutex> lock(mutex_);
    const std::pair where(sycl::get_native<kBackend>(queue.get_device()),
                          sycl::get_native<kBackend>(queue.get_context()));
    const auto found = built_.find(where);
    if (found != built_.end()) return found->second;
    return built_.emplace(where, build(queue, where.first, where.second)).first->second;
  }

 private:
  static constexpr auto kBackend = sycl::backend::opencl;

  static std::string newest(cl_device_id device) {
    char version[64] = "";  // "OpenCL 3.0 ..."
    clGetDeviceInfo(device, CL_DEVICE_VERSION, sizeof version, version, nullptr);
    return std::string(version).rfind("OpenCL 3", 0) == 0 ? "-cl-std=CL3.0" : "";
  }

  sycl::kernel build(const sycl::queue& queue, cl_device_id device,
                     cl_context context) const {
    const char* text = source_.c_str();
    cl_int status = CL_SUCCESS;
    cl_program program = clCreateProgramWithSource(context, 1, &text, nullptr, &status);
    TORCH_CHECK(status == CL_SUCCESS, "clCreateProgramWithSource failed with ", status);
    const std::unique_ptr<_cl_program, decltype(&clReleaseProgram)> owner(
        program, &clReleaseProgram);
    const std::string options = options_.empty() ? newest(device) : options_;
    status = clBuildProgram(program, 1, &device, options.c_str(), nullptr, nullptr);
    cl_kernel kernel = nullptr;
    if (status == CL_SUCCESS) kernel = clCreateKernel(program, entry_.c_str(), &status);
    TORCH_CHECK(status == CL_SUCCESS, "kernel ", entry_, " does not build (", status,
                "):\n", build_log(program, device), "\n", source_);
    return sycl::make_kernel<kBackend>(kernel, queue.get_context());
  }

  static std::string build_log(cl_program program, cl_device_id device) {
    size_t bytes = 0;
    clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, 0, nullptr, &bytes);
    std::string log(bytes, '\0');
    clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, bytes, log.data(),
                          nullptr);
    return log.substr(0, log.find('\0'));
  }

  std::string source_, entry_, options_;
  std::mutex mutex_;
  std::map<std::pair<cl_device_id, cl_context>, sycl::kernel> built_;
};

}  // namespace xpurt

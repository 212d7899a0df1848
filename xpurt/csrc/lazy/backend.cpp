#include "lazy/backend.h"

#include <ATen/Context.h>
#include <torch/csrc/lazy/backend/backend_interface.h>
#include <torch/csrc/lazy/ts_backend/ts_backend_impl.h>

#include "lazy/graph.h"
#include "lazy/graph_executor.h"
#include "lazy/lazy_kernels.h"
#include "lazy/metrics.h"
#include "lazy/real_devices.h"
#include "stream/stream.h"

namespace xpurt {
namespace {

using at::Tensor;
using torch::lazy::BackendDataPtr;
using torch::lazy::BackendDevice;
using torch::lazy::BackendDeviceType;
using torch::lazy::ComputationPtr;
using torch::lazy::LoweringContext;
using torch::lazy::Shape;
using torch::lazy::TSData;
using torch::lazy::Util;

TSData& data_of(const BackendDataPtr& data) {
  return static_cast<TSData&>(*data);
}

// Note [Numbers of lazy programs]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// The lazy core makes a tensor without dimensions of each Python number, so that
// another number needs no other graph. Most ops of the graph read it back as a number.
// So it stays in the host's memory, and only a run of a graph that uses it as a tensor
// copies it to the device. The core caches these tensors for good: one on xpu would
// keep the mapping from changing.
bool may_be_number(const Tensor& tensor) {
  return tensor.is_cpu() && tensor.dim() == 0;
}

void check_computed(const Tensor& tensor) {
  TORCH_CHECK(tensor.defined(),
              "the value of a lazy tensor was asked for, and the step that had to "
              "compute it raised an error. Make the tensor again.");
}

class Backend final : public torch::lazy::BackendImplInterface {
 public:
  void InitializeAtenBindings() const override { init_lazy_kernels(); }
  void PrepareToExit() const override { synchronize_all(); }

  void SetRngSeed(size_t seed) const override {
    for (const BackendDevice& each : backend_devices()) {
      const c10::Device device = real_device(each);
      if (device.type() != lazy_device_type()) continue;
      at::Generator generator = at::globalContext().defaultGenerator(device);
      generator.set_current_seed(seed);
    }
  }

  const torch::lazy::IrBuilder* GetIrBuilder() const override {
    return torch::lazy::GetTSBackendImpl()->GetIrBuilder();
  }

  BackendDataPtr MakeComputationDataFromTensor(
      const Tensor& tensor, const Shape& shape,
      const BackendDevice& device) const override {
    register_lazy_kernels();
    if (may_be_number(tensor))
      return std::make_shared<TSData>(tensor.clone(), shape, device);
    const Tensor kept = moved_to(tensor, real_device(device)).contiguous();
    return std::make_shared<TSData>(kept, shape, device);
  }
  BackendDataPtr MakeComputationDataFromScalar(
      const at::Scalar& scalar, const BackendDevice& device) const override {
    return std::make_shared<TSData>(scalar, device);
  }
  BackendDataPtr CreateDataPlaceholder(const BackendDevice& device,
                                       const Shape& shape) const override {
    return std::make_shared<TSData>(shape, device);
  }
  BackendDataPtr GetComputationDataFromNode(
      const torch::lazy::Node* node) const override {
    return torch::lazy::GetTSBackendImpl()->GetComputationDataFromNode(node);
  }
  Tensor MakeTensorFromComputationData(
      const BackendDataPtr data, std::optional<at::ScalarType> dtype) const override {
    const Tensor found = data_of(data).data();
    check_computed(found);
    return dtype.has_value() ? found.to(*dtype) : found;
  }

  std::unique_ptr<LoweringContext> CreateLoweringContext(
      const std::string& name, BackendDevice device,
      c10::ArrayRef<const torch::lazy::Node*> post_order,
      Util::EmissionMap emit_status) const override {
    return std::make_unique<Lowering>(name, std::move(device), post_order,
                                      std::move(emit_status));
  }
  std::unique_ptr<LoweringContext> CreateLoweringContext(
      const std::string& name, BackendDevice device) const override {
    return std::make_unique<Lowering>(name, std::move(device));
  }
  std::vector<std::string> GetCompilationDevices(
      const std::string& device, c10::ArrayRef<std::string> devices) const override {
    return devices.empty() ? std::vector<std::string>{device} : devices.vec();
  }
  std::vector<ComputationPtr> Compile(
      std::vector<ComputationPtr> graphs) const override {
    return graphs;
  }

  std::vector<BackendDataPtr> ExecuteComputation(
      ComputationPtr computation, c10::ArrayRef<BackendDataPtr> arguments,
      const BackendDevice& device) const override {
    auto& graph = static_cast<LazyGraph&>(*computation);
    const c10::Device real = real_device(device);
    std::vector<c10::IValue> values;
    for (size_t at = 0; at < arguments.size(); ++at) {
      TSData& data = data_of(arguments[at]);
      if (data.scalar.has_value()) {
        values.emplace_back(*data.scalar);
        continue;
      }
      check_computed(data.data());
      const bool moves = may_be_number(data.data()) && !graph.is_number(at);
      values.emplace_back(moves ? moved_to(data.data(), real) : data.data());
      // No later graph reads it: its memory is free after its last use in this one.
      if (arguments[at].use_count() == 1) data.Assign(TSData(data.shape(), device));
    }
    std::vector<BackendDataPtr> results;
    for (Tensor& each : graph.run(std::move(values), real)) {
      const Shape shape(each.scalar_type(), each.sizes());
      results.push_back(std::make_shared<TSData>(std::move(each), shape, device));
    }
    return results;
  }

  std::shared_ptr<BackendDeviceType> GetDefaultDeviceType() const override {
    // torch::lazy takes the type from a device.
    return std::make_shared<RealType>(lazy_device_type());
  }
  void SetDefaultDeviceType(int8_t type) override {
    set_lazy_device_type(static_cast<c10::DeviceType>(type));
  }
  int64_t GetDefaultDeviceOrdinal() const override { return current_ordinal(); }
  void SetDefaultDeviceOrdinal(int64_t index) override {
    set_current_ordinal(static_cast<c10::DeviceIndex>(index));
  }
  // Under any type: the lazy core's fallback knows CPU and CUDA alone. Ops that the
  // core lacks have kernels of xpurt (lazy_kernels.h) instead of that fallback. New
  // tensors without elements that count are made there, and moved when a graph reads
  // them.
  at::DeviceType EagerFallbackDeviceType() const override { return at::kCPU; }

  std::vector<BackendDevice> GetBackendDevices() const override {
    return backend_devices();
  }
  BackendDevice GetBackendDevice(c10::Device device) const override {
    return backend_device(device.is_lazy() ? real_device(device) : device);
  }
  std::string CreateMetricReport() const override {
    std::vector<c10::Device> devices;
    for (const BackendDevice& each : backend_devices())
      devices.push_back(real_device(each));
    return memory_report(devices);
  }
  std::string GetComputationBackendText(
      const ComputationPtr computation) const override {
    return computation->to_string();
  }
};

}  // namespace

void init_lazy_backend() {
  static const bool once = [] {
    TORCH_CHECK(
        !torch::lazy::hasBackend(),
        "xpurt.lazy.init() makes xpu the backend of lazy tensors, and a process "
        "has one; found PyTorch's, of torch._lazy.ts_backend.init(). Call "
        "xpurt.lazy.init() instead of it, in a new process.");
    torch::lazy::InitTorchScriptBackend();
    torch::lazy::LazyGraphExecutor::Register(new GraphExecutor);  // for the process
    static const Backend backend;
    static const torch::lazy::BackendRegistrar registrar(&backend);
    backend.InitializeAtenBindings();
    count_fallbacks();
    return true;
  }();
  (void)once;
}

}  // namespace xpurt

// Sharing, replicas and the scheduler in Python.
#include <ATen/DLConvertor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <torch/csrc/utils/pybind.h>

#include <array>
#include <functional>
#include <memory>

#include "host/gil.h"
#include "memory/replica/replica.h"
#include "memory/replica/transfers.h"
#include "native/share.h"
#include "python/bind.h"
#include "schedule/scheduler.h"
#include "schedule/split.h"

namespace py = pybind11;

namespace xpurt {
namespace {

// Releases the owner when it is called. Releases it also when it is destroyed without a
// call, as borrowing may be refused.
std::function<void()> keep_alive(py::object owner) {
  const auto destroy = [](py::object* kept) {
    if (!Py_IsInitialized()) return;
    const WithGil gil;
    delete kept;
  };
  std::shared_ptr<py::object> kept(new py::object(std::move(owner)), destroy);
  return [kept = std::move(kept)]() mutable { kept.reset(); };
}

void check_xpu(const at::Tensor& tensor) {
  TORCH_CHECK_TYPE(tensor.defined() && tensor.is_xpu() && tensor.has_storage(),
                   "an xpu tensor with a storage is wanted");
}

// The DLTensor of a capsule that is not consumed yet; nullptr if it is no such capsule.
const DLTensor* dl_tensor_of(PyObject* capsule) {
  if (PyCapsule_IsValid(capsule, "dltensor")) {
    return &static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule, "dltensor"))
                ->dl_tensor;
  }
  constexpr const char* kVersioned = "dltensor_versioned";
  if (!PyCapsule_IsValid(capsule, kVersioned)) return nullptr;
  return &static_cast<DLManagedTensorVersioned*>(
              PyCapsule_GetPointer(capsule, kVersioned))
              ->dl_tensor;
}

// PyTorch finds a capsule's device by its memory. A capsule of no elements has no
// memory, so its device is the one in its DLTensor. Returns None for any other capsule,
// which stays unchanged.
std::optional<at::Tensor> empty_from_dlpack(const py::object& capsule) {
  const DLTensor* found = dl_tensor_of(capsule.ptr());
  if (found == nullptr || found->data != nullptr ||
      found->device.device_type != kDLOneAPI) {
    return std::nullopt;
  }
  const c10::IntArrayRef sizes(found->shape, found->ndim);
  if (c10::multiply_integers(sizes) != 0) return std::nullopt;
  const c10::Device device(c10::DeviceType::XPU,
                           static_cast<c10::DeviceIndex>(found->device.device_id));
  const auto options = at::device(device).dtype(at::toScalarType(found->dtype));
  if (found->strides == nullptr) return at::empty(sizes, options);
  return at::empty_strided(sizes, c10::IntArrayRef(found->strides, found->ndim),
                           options);
}

std::vector<size_t> positions_of(const at::Tensor& tensor) {
  check_xpu(tensor);
  const c10::StorageImpl& storage = *tensor.storage().unsafeGetStorageImpl();
  std::vector<size_t> found;
  for (size_t p = 0; p < ordinal(tensor.device().index()).devices.size(); ++p) {
    if (is_valid_on(storage, p)) found.push_back(p);
  }
  return found;
}

}  // namespace

void bind_share(py::module_& m) {
  py::module_ testing = m.def_submodule("testing");
  m.def("share_with_xpu", &share_with_xpu, py::arg("tensor"), py::arg("index"));
  m.def("share_with_cpu", &share_with_cpu, py::arg("tensor"));
  m.def("move_to_memory_of", &move_to_memory_of, py::arg("tensor"), py::arg("cpu"),
        py::call_guard<py::gil_scoped_release>());
  m.def("lender_of", [](const at::Tensor& tensor) {
    const at::Tensor found = lender_of(tensor);
    return found.defined() ? std::optional(found) : std::nullopt;
  });
  m.def("around_usm", [](uintptr_t data, const std::vector<int64_t>& sizes,
                         const std::vector<int64_t>& strides, at::ScalarType dtype,
                         c10::DeviceIndex index, py::object owner) {
    return around_usm(reinterpret_cast<void*>(data), sizes, strides, dtype, index,
                      keep_alive(std::move(owner)));
  });
  m.def("ordinal_of_usm", [](uintptr_t pointer, uintptr_t context) {
    return ordinal_of_usm(reinterpret_cast<const void*>(pointer),
                          reinterpret_cast<const sycl::context*>(context));
  });
  m.def("empty_from_dlpack", &empty_from_dlpack);
  m.def("positions_of", &positions_of);
  testing.def("replica_bytes", &replica_bytes);
  testing.def("set_split_proportions", &set_split_proportions, py::arg("proportions"),
              py::arg("least_bytes") = 0.0, py::arg("unit") = 0);
  testing.def("shards_run", &shards_run);
  testing.def("transfers_to", [](c10::DeviceIndex index) {
    std::vector<std::pair<uint64_t, uint64_t>> result;
    for (const Transfers& each : transfers_of(index)) {
      result.emplace_back(each.count, each.bytes);
    }
    return result;
  });
  m.def("replica_counts", [](c10::DeviceIndex index) {
    std::vector<std::array<uint64_t, 4>> result;
    for (const Transfers& each : transfers_of(index)) {
      const uint64_t resident = replica_bytes(index, result.size());
      result.push_back({resident, each.bytes, each.from, each.evicted});
    }
    return result;
  });
  m.def("set_preference", &set_preference);
  testing.def(
      "preferences_held", &preferences_held,
      "For tests: preferences of set_preference that hold now, in all threads.");
  m.def(
      "device_costs",
      [](c10::DeviceIndex index) {
        std::vector<std::array<double, 5>> rows;
        for (const DeviceCost& each : device_costs(index)) {
          rows.push_back({each.launch_us, each.bytes_per_us, each.flops_per_us,
                          each.copy_launch_us, each.copy_bytes_per_us});
        }
        return rows;
      },
      "The rows of set_device_costs(); empty if there are none.");
  m.def("set_device_costs",
        [](c10::DeviceIndex index, const std::vector<std::array<double, 5>>& rows) {
          std::vector<DeviceCost> costs;
          for (const auto& [launch, bytes, flops, copy_launch, copy_bytes] : rows) {
            costs.push_back({launch, bytes, flops, copy_launch, copy_bytes});
          }
          set_device_costs(index, std::move(costs));
        });
}

}  // namespace xpurt

// Streams and events for torch.xpu, and queues to and from dpctl.
#include <pybind11/pybind11.h>
#include <torch/csrc/Event.h>

#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

#include "host/waiting.h"
#include "memory/gpu_trace.h"
#include "python/bind.h"
#include "python/queue_capsule.h"
#include "stream/stream.h"

namespace py = pybind11;

namespace xpurt {
namespace {

py::tuple parts(c10::Stream id) {
  return py::make_tuple(id.id(), id.device_index(),
                        static_cast<int64_t>(id.device_type()));
}

c10::Stream id_of(c10::StreamId id, c10::DeviceIndex index) {
  return c10::Stream(c10::Stream::UNSAFE, c10::Device(c10::DeviceType::XPU, index), id);
}

void check_interrupt() {
  py::gil_scoped_acquire gil;
  if (PyErr_CheckSignals() != 0) throw py::error_already_set();
}

const c10::Event& event_of(py::handle object) {
  if (!THPEvent_Check(object.ptr())) throw py::type_error("expected a torch.Event");
  return reinterpret_cast<THPEvent*>(object.ptr())->event;
}

void submit_sleep(Stream& stream, double seconds) {
  stream.home_queue()->submit([&](sycl::handler& h) {
    h.host_task([seconds] {
      std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    });
  });
}

const sycl::queue& queue_at(uintptr_t address) {
  if (address == 0) throw py::value_error("the address of the sycl::queue is null");
  return *reinterpret_cast<const sycl::queue*>(address);
}

// The first ordinal whose home device the queue runs on; the current one has
// precedence.
c10::DeviceIndex ordinal_of_queue(uintptr_t address) {
  const sycl::device device = queue_at(address).get_device();
  const auto& ordinals = placement().ordinals;
  const c10::DeviceIndex current = current_device();
  if (ordinal(current).home_device().device == device) return current;
  for (size_t i = 0; i < ordinals.size(); ++i) {
    if (ordinals[i].home_device().device == device) {
      return static_cast<c10::DeviceIndex>(i);
    }
  }
  throw py::value_error("the queue runs on " +
                        device.get_info<sycl::info::device::name>() +
                        ", which holds the memory of no xpu device under mapping \"" +
                        placement().mapping + "\"");
}

void set_stream(c10::StreamId id, c10::DeviceIndex index, int64_t type) {
  if (type != static_cast<int64_t>(c10::DeviceType::XPU)) {
    throw py::value_error("the stream is not a stream of an xpu device");
  }
  exchange_stream(id_of(id, index));
  exchange_device(index);
}

}  // namespace

void bind_stream(py::module_& m) {
  m.def("priority_range",
        [] { return py::make_tuple(kLowestPriority, kHighestPriority); });
  m.def("stream_priority", [](c10::StreamId id, c10::DeviceIndex index) {
    return stream(id_of(id, index)).priority();
  });
  m.def("current_stream",
        [](c10::DeviceIndex index) { return parts(current_stream_id(index)); });
  m.def("current_queue", [](c10::DeviceIndex index) {
    return reinterpret_cast<uintptr_t>(&current_stream(index).shared_queue());
  });
  m.def("set_stream", &set_stream, py::arg("stream_id"), py::arg("device_index"),
        py::arg("device_type"));
  m.def("external_stream", [](uintptr_t queue, c10::DeviceIndex index) {
    return parts(external_stream_id(index, queue_at(queue)));
  });
  m.def("ordinal_of_queue", &ordinal_of_queue);
  m.def("queue_capsule", [](c10::StreamId id, c10::DeviceIndex index) {
    return capsule_of(stream(id_of(id, index)).shared_queue());
  });
  m.def("synchronize_device", [](c10::DeviceIndex index) {
    notify_tracer(&Tracer::trace_gpu_device_synchronization);
    synchronize_device(index);
  });
  m.def("event_elapsed_ms", [](py::handle start, py::handle end) {
    return event_of(start).elapsedTime(event_of(end));
  });
  m.def("sleep", [](int64_t cycles) {
    if (cycles < 0) throw py::value_error("cycles may not be negative");
    Stream& current = current_stream();
    const sycl::device& device = current.ordinal().home_device().device;
    const auto mhz = device.get_info<sycl::info::device::max_clock_frequency>();
    // In virtual machines drivers may report no clock rate: a cycle is a nanosecond.
    const double hz = mhz == 0 ? 1e9 : 1e6 * mhz;
    submit_sleep(current, static_cast<double>(cycles) / hz);
  });
  // For tests only: device work that fails, and work that takes a given time.
  m.def("_submit_failure",
        [](c10::StreamId id, c10::DeviceIndex index, const std::string& reason) {
          stream(id_of(id, index)).home_queue()->submit([&](sycl::handler& h) {
            h.host_task([reason] { throw std::runtime_error(reason); });
          });
        });
  m.def("_submit_sleep", [](c10::StreamId id, c10::DeviceIndex index, double seconds) {
    submit_sleep(stream(id_of(id, index)), seconds);
  });

  const auto main_thread =
      py::module_::import("threading").attr("main_thread")().attr("ident");
  set_interrupt_check(&check_interrupt, main_thread.cast<unsigned long>());
}

}  // namespace xpurt

#include "stream.h"

#include <c10/util/Exception.h>

#include <array>

#include "gil.h"

namespace xpurt {
namespace {

// A stream id is the placement's epoch and an index into the ordinal's streams,
// so that a stream of a replaced mapping is recognized when it is used.
constexpr int kIndexBits = 16;
constexpr int kPoolSize = 32;  // streams per priority, handed out in turn
constexpr size_t kFirstExternal = 1 + 2 * kPoolSize;

c10::Stream make_id(c10::DeviceIndex device, size_t index) {
  const auto id =
      static_cast<c10::StreamId>(((placement().epoch - 1) << kIndexBits) | index);
  return c10::Stream(c10::Stream::UNSAFE, c10::Device(c10::DeviceType::XPU, device),
                     id);
}

struct OrdinalStreams {
  std::mutex mutex;
  std::vector<std::unique_ptr<Stream>> streams{kFirstExternal};
  std::array<std::atomic<unsigned>, 2> next{};  // by priority: low, high
};

// All streams of one placement. Leaked with it: see Note [Leaked on purpose].
struct PlacementStreams {
  uint64_t epoch;
  std::array<OrdinalStreams, kMaxDevices> ordinals;
};

std::mutex streams_mutex;
std::atomic<PlacementStreams*> streams_now{nullptr};

PlacementStreams& streams_of(const Placement& now) {
  PlacementStreams* found = streams_now.load(std::memory_order_acquire);
  if (found != nullptr && found->epoch == now.epoch) return *found;
  std::lock_guard<std::mutex> lock(streams_mutex);
  found = streams_now.load();
  if (found == nullptr || found->epoch != now.epoch) {
    found = new PlacementStreams{now.epoch, {}};
    streams_now = found;
  }
  return *found;
}

c10::DeviceIndex checked(c10::DeviceIndex index) {
  if (index < 0) index = current_device();
  xpurt::ordinal(index);
  return index;
}

int priority_of(size_t index) {
  return index > kPoolSize ? kHighestPriority : kLowestPriority;
}

struct CurrentStreams {
  uint64_t epoch = 0;
  std::array<Stream*, kMaxDevices> streams{};
};
thread_local CurrentStreams current_streams;

CurrentStreams& current_of_thread() {
  const uint64_t epoch = placement().epoch;
  if (current_streams.epoch != epoch) current_streams = {epoch, {}};
  return current_streams;
}

}  // namespace

Stream::Stream(const Ordinal& ordinal, c10::Stream id, int priority)
    : ordinal_(ordinal),
      id_(id),
      priority_(priority),
      queues_(ordinal.devices.size()),
      last_(ordinal.home) {}

Stream::Stream(const Ordinal& ordinal, c10::Stream id, const sycl::queue& external)
    : Stream(ordinal, id, kLowestPriority) {
  queues_[ordinal.home] = std::make_unique<sycl::queue>(external);
}

sycl::queue& Stream::open(size_t position) {
  auto& slot = queues_[position];
  if (!slot) {
    const PhysicalDevice& device = *ordinal_.devices[position];
    auto keep_first = [this](sycl::exception_list errors) {
      std::lock_guard<std::mutex> lock(error_mutex_);
      for (const auto& error : errors) {
        if (!error_) error_ = error;
      }
    };
    sycl::property_list in_order{sycl::property::queue::in_order{}};
    slot = std::make_unique<sycl::queue>(device.context, device.device, keep_first,
                                         in_order);
  }
  return *slot;
}

sycl::queue& Stream::queue(size_t position) {
  std::lock_guard<std::mutex> lock(mutex_);
  sycl::queue& next = open(position);
  if (position != last_) {
    if (queues_[last_] && !idle()) {
      next.ext_oneapi_submit_barrier({queues_[last_]->ext_oneapi_submit_barrier()});
    }
    last_ = position;
  }
  ++submitted_;
  return next;
}

bool Stream::query() {
  if (idle()) return true;
  std::lock_guard<std::mutex> lock(mutex_);
  return !queues_[last_] || queues_[last_]->ext_oneapi_empty();
}

void Stream::wait() {
  if (!idle()) {
    WithoutGil released;
    // What another thread submits meanwhile may or may not be waited for: it is
    // left for the next call.
    const uint64_t covered = submitted_.load();
    try {
      for (auto& queue : queues_) {
        if (queue) queue->wait_and_throw();
      }
    } catch (const sycl::exception& error) {
      std::lock_guard<std::mutex> lock(error_mutex_);
      if (!error_) error_ = std::current_exception();
    }
    uint64_t before = finished_.load();
    while (before < covered && !finished_.compare_exchange_weak(before, covered)) {
    }
  }
  rethrow();
}

void Stream::rethrow() {
  std::exception_ptr error;
  {
    std::lock_guard<std::mutex> lock(error_mutex_);
    std::swap(error, error_);
  }
  if (!error) return;
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& reason) {
    TORCH_CHECK(false, "work submitted earlier to ", id_,
                " failed on the device: ", reason.what());
  }
}

sycl::event Stream::record() {
  std::lock_guard<std::mutex> lock(mutex_);
  return open(last_).ext_oneapi_submit_barrier();
}

void Stream::wait_event(const sycl::event& event) {
  std::lock_guard<std::mutex> lock(mutex_);
  open(last_).ext_oneapi_submit_barrier({event});
  ++submitted_;
}

Stream& stream(c10::Stream id) {
  const Placement& now = placement();
  const auto raw = static_cast<uint64_t>(id.id());
  TORCH_CHECK((raw >> kIndexBits) == now.epoch - 1, id,
              " belongs to an xpu mapping that has been replaced; the mapping is now "
              "\"",
              now.mapping, "\". Make a new stream.");
  const Ordinal& device = ordinal(id.device_index());
  auto& of_ordinal = streams_of(now).ordinals[id.device_index()];
  const size_t index = raw & ((1u << kIndexBits) - 1);
  std::lock_guard<std::mutex> lock(of_ordinal.mutex);
  TORCH_CHECK(index < of_ordinal.streams.size(), "there is no stream ", id);
  auto& slot = of_ordinal.streams[index];
  if (!slot) slot = std::make_unique<Stream>(device, id, priority_of(index));
  return *slot;
}

Stream& current_stream(c10::DeviceIndex index) {
  auto& streams = current_of_thread().streams;
  if (index < 0) index = current_device();
  if (index < kMaxDevices && streams[index] != nullptr) return *streams[index];
  Stream& found = stream(make_id(checked(index), 0));
  streams[index] = &found;
  return found;
}

c10::Stream current_stream_id(c10::DeviceIndex index) {
  return current_stream(index).id();
}

c10::Stream default_stream_id(c10::DeviceIndex index) {
  return make_id(checked(index), 0);
}

c10::Stream pool_stream_id(c10::DeviceIndex index, int priority) {
  index = checked(index);
  const int level = priority < 0 ? 1 : 0;
  auto& next = streams_of(placement()).ordinals[index].next[level];
  return make_id(index, 1 + level * kPoolSize + next++ % kPoolSize);
}

c10::Stream external_stream_id(c10::DeviceIndex index, const sycl::queue& queue) {
  index = checked(index);
  const Ordinal& device = ordinal(index);
  TORCH_CHECK(queue.get_device() == device.home_device().device, "the queue runs on ",
              queue.get_device().get_info<sycl::info::device::name>(),
              ", but xpu:", static_cast<int>(index), " is ", device.home_device().name);
  TORCH_CHECK(queue.is_in_order(),
              "an xpu stream is an in-order queue, but this queue is out-of-order; "
              "make it with the property in_order");
  auto& of_ordinal = streams_of(placement()).ordinals[index];
  std::lock_guard<std::mutex> lock(of_ordinal.mutex);
  const c10::Stream id = make_id(index, of_ordinal.streams.size());
  of_ordinal.streams.push_back(std::make_unique<Stream>(device, id, queue));
  return id;
}

c10::Stream exchange_stream(c10::Stream id) {
  const c10::Stream previous = current_stream_id(id.device_index());
  current_of_thread().streams[id.device_index()] = &stream(id);
  return previous;
}

void synchronize_device(c10::DeviceIndex index) {
  index = checked(index);
  auto& of_ordinal = streams_of(placement()).ordinals[index];
  std::vector<Stream*> open;
  {
    std::lock_guard<std::mutex> lock(of_ordinal.mutex);
    for (auto& each : of_ordinal.streams) {
      if (each) open.push_back(each.get());
    }
  }
  for (Stream* each : open) each->wait();
}

void synchronize_all() {
  if (installed_placement() == nullptr || in_bad_fork()) return;
  for (size_t i = 0; i < placement().ordinals.size(); ++i) {
    synchronize_device(static_cast<c10::DeviceIndex>(i));
  }
}

}  // namespace xpurt

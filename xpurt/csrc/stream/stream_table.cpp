// The streams of each ordinal: the default one, the pools, the external ones.
#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <exception>

#include "host/host_waits.h"
#include "stream/events_across.h"
#include "stream/stream.h"

namespace xpurt {
namespace {

// A stream id is the placement's number and an index into the ordinal's streams, so
// that the use of another mapping's stream is detected. Index 0 is the default stream;
// then come the pools, then the external streams. A placement that is installed again
// has the streams that it had before.
constexpr int kIndexBits = 16;
constexpr size_t kPoolSize = 32;  // streams per priority, used round-robin
constexpr std::array kPriorities{kNormalPriority, kHighestPriority, kLowestPriority};
constexpr size_t kFirstExternal = 1 + kPriorities.size() * kPoolSize;

struct OrdinalStreams {
  Mutex mutex{Rank::ordinal_streams};
  std::vector<std::unique_ptr<Stream>> streams{kFirstExternal};
  std::vector<sycl::queue> external;  // from index kFirstExternal on
  std::array<std::atomic<unsigned>, kPriorities.size()> next{};

  std::vector<Stream*> open() {
    std::lock_guard<Mutex> lock(mutex);
    std::vector<Stream*> result;
    for (auto& each : streams) {
      if (each) result.push_back(each.get());
    }
    return result;
  }
};

// All streams of one placement. Leaked with it: see Note [Leaked on purpose].
struct PlacementStreams {
  const Placement& placement;
  const uint64_t number;  // 0 is the first placement that had streams
  std::array<OrdinalStreams, kMaxDevices> ordinals;
};

Mutex streams_mutex{Rank::all_streams};
std::atomic<PlacementStreams*> streams_now{nullptr};

std::vector<PlacementStreams*>& streams_ever() {
  static auto* const leaked = new std::vector<PlacementStreams*>;
  return *leaked;
}

PlacementStreams& streams_of(const Placement& now) {
  PlacementStreams* found = streams_now.load(std::memory_order_acquire);
  if (found != nullptr && &found->placement == &now) return *found;
  std::lock_guard<Mutex> lock(streams_mutex);
  auto& ever = streams_ever();
  const auto known = std::ranges::find_if(
      ever, [&](const PlacementStreams* each) { return &each->placement == &now; });
  if (known != ever.end()) {
    found = *known;
  } else {
    found = new PlacementStreams{now, ever.size(), {}};
    ever.push_back(found);
  }
  streams_now = found;
  return *found;
}

c10::Stream make_id(const PlacementStreams& streams, c10::DeviceIndex device,
                    size_t index) {
  const uint64_t raw = streams.number << kIndexBits | index;
  return c10::Stream(c10::Stream::UNSAFE, c10::Device(c10::DeviceType::XPU, device),
                     static_cast<c10::StreamId>(raw));
}

c10::Stream make_id(c10::DeviceIndex device, size_t index) {
  return make_id(streams_of(placement()), device, index);
}

c10::DeviceIndex checked(c10::DeviceIndex index) {
  if (index < 0) index = current_device();
  xpurt::ordinal(index);
  return index;
}

size_t level_of(int priority) {
  priority = std::clamp(priority, kHighestPriority, kLowestPriority);
  return std::ranges::find(kPriorities, priority) - kPriorities.begin();
}

int priority_of(size_t index) {
  return index == 0 ? kNormalPriority : kPriorities[(index - 1) / kPoolSize];
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

// Waits for all of them, then throws the first error. A KeyboardInterrupt is not a
// c10::Error, and ends the wait at once.
void wait_for(const std::vector<Stream*>& streams) {
  std::exception_ptr first;
  for (Stream* each : streams) {
    try {
      each->wait();
    } catch (const c10::Error&) {
      if (!first) first = std::current_exception();
    }
  }
  if (first) std::rethrow_exception(first);
}

void check_external(const PhysicalDevice& home, c10::DeviceIndex index,
                    const sycl::queue& queue) {
  TORCH_CHECK_VALUE(
      queue.is_in_order(),
      "an xpu stream is an in-order queue, but this queue is out-of-order, so xpu's "
      "work could not rely on the order of submission. Make the queue with the "
      "property in_order: dpctl.SyclQueue(..., property=\"in_order\")");
  TORCH_CHECK_VALUE(queue.get_device() == home.device, "the queue runs on ",
                    queue.get_device().get_info<sycl::info::device::name>(),
                    ", but xpu:", static_cast<int>(index), " is ", home.name,
                    ". Pass the device that the queue was made for.");
  TORCH_CHECK_VALUE(queue.get_context() == home.context || home.system_usm,
                    "the queue belongs to another SYCL context than the memory of xpu:",
                    static_cast<int>(index),
                    ". Make it in the context of an xpu stream's queue.");
}

}  // namespace

Stream& stream(c10::Stream id) {
  const Placement& now = placement();
  const auto raw = static_cast<uint64_t>(id.id());
  PlacementStreams& streams = streams_of(now);
  TORCH_CHECK((raw >> kIndexBits) == streams.number, id,
              " belongs to an xpu mapping that has been replaced; the mapping is now "
              "\"",
              now.mapping, "\". Make a new stream.");
  const Ordinal& device = ordinal(id.device_index());
  auto& of_ordinal = streams.ordinals[id.device_index()];
  const size_t index = raw & ((1u << kIndexBits) - 1);
  std::lock_guard<Mutex> lock(of_ordinal.mutex);
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
  const size_t level = level_of(priority);
  auto& next = streams_of(placement()).ordinals[index].next[level];
  return make_id(index, 1 + level * kPoolSize + next++ % kPoolSize);
}

c10::Stream external_stream_id(c10::DeviceIndex index, const sycl::queue& queue) {
  index = checked(index);
  const Ordinal& device = ordinal(index);
  check_external(device.home_device(), index, queue);
  PlacementStreams& streams = streams_of(placement());
  auto& of_ordinal = streams.ordinals[index];
  std::lock_guard<Mutex> lock(of_ordinal.mutex);
  auto& known = of_ordinal.external;
  const size_t position = std::ranges::find(known, queue) - known.begin();
  const c10::Stream id = make_id(streams, index, kFirstExternal + position);
  if (position == known.size()) {
    TORCH_CHECK(of_ordinal.streams.size() < (1u << kIndexBits),
                "too many external streams on xpu:", static_cast<int>(index));
    known.push_back(queue);
    of_ordinal.streams.push_back(std::make_unique<Stream>(device, id, queue));
  }
  return id;
}

c10::Stream exchange_stream(c10::Stream id) {
  const c10::Stream previous = current_stream_id(id.device_index());
  current_of_thread().streams[id.device_index()] = &stream(id);
  return previous;
}

std::vector<Stream*> busy_streams(c10::DeviceIndex index) {
  std::vector<Stream*> found = streams_of(placement()).ordinals[index].open();
  std::erase_if(found, [](const Stream* each) { return each->idle(); });
  return found;
}

void synchronize_device(c10::DeviceIndex index) {
  count_host_wait();
  index = checked(index);
  wait_for(streams_of(placement()).ordinals[index].open());
}

// Note [Exit]
// ~~~~~~~~~~~
// SYCL tears itself down in a static destructor, which aborts if work is pending
// between two devices. Python waits for the queues when it begins to exit. This wait
// is for later submissions, and for processes that leave through exit().
void synchronize_all() {
  if (in_bad_fork()) return;
  std::vector<Stream*> all;
  {
    std::lock_guard<Mutex> lock(streams_mutex);
    for (PlacementStreams* each : streams_ever()) {
      for (OrdinalStreams& of_ordinal : each->ordinals) {
        for (Stream* open : of_ordinal.open()) all.push_back(open);
      }
    }
  }
  wait_for(all);
  wait_for_events_across();
}

namespace {
[[maybe_unused]] const bool waits_at_exit =
    (before_driver_ends(&synchronize_all), true);
}  // namespace

}  // namespace xpurt

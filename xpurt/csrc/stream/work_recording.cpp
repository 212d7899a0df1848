#include "stream/work_recording.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "device/current_device.h"
#include "device/device_clock.h"
#include "device/event_status.h"
#include "host/gil.h"
#include "host/mutex.h"
#include "host/waiting.h"
#include "stream/capture.h"

namespace xpurt {

namespace {

// Note [Recorded work]
// ~~~~~~~~~~~~~~~~~~~~
// Work has times only on a queue with profiling, where every submission costs more (see
// Note [Timed events]). So a stream has two sets of queues: the ordinary ones, and
// those that it uses while work is recorded. It changes from one set to the other at
// its next submission, as it changes from one device's queue to another's: later work
// starts later, and no thread waits. A queue that other code submits to as well stays
// the stream's queue. Work on it gets a stamp on a queue of the recorder. The stamp
// carries the time at which the work ended. The work's start is taken as its submission
// or the end of the work before it, whichever is later.
//
// Events are kept until the recording ends. Then the work is done, and their times can
// be read without a wait. A thread that submits at the moment at which recording begins
// may have got an ordinary queue: that work's times are lost.
//
// PyTorch's CPU kernels also use the CPU device. The calling thread runs them, and no
// queue holds them. Each is recorded when it ends; its start is the end of its wait for
// operands. It has a row beside the stream's queue, since other threads, and work that
// the kernel does not depend on, run at the same time. On a device that is not a CPU
// such a kernel is not the device's work, even where the host reads the memory.

struct Pending {
  RecordedWork work;  // start_ns: when it was submitted
  sycl::event done;
  bool stamped;
};

using Clocks = std::map<const PhysicalDevice*, std::unique_ptr<DeviceClock>>;

// No thread waits for a device under the lock: the wait releases the GIL and takes it
// back.
struct Recorder {
  Mutex mutex{Rank::recorder};
  Clocks clocks;
  std::map<std::pair<const Stream*, size_t>, size_t> numbers;
  std::vector<RecordedQueue> queues;
  std::vector<const PhysicalDevice*> devices;        // by queue
  std::vector<std::unique_ptr<sycl::queue>> stamps;  // by queue; made on use
  std::vector<Pending> pending;
  std::vector<RecordedWork> ended;  // on the host
};

// The position that stands for the host's threads among the queues of a stream.
constexpr size_t kOnHost = SIZE_MAX;

// Leaked: see Note [Leaked on purpose].
Recorder& recorder() {
  static auto* const leaked = new Recorder;
  return *leaked;
}

struct Correlations {
  uint64_t session = 0;
  std::vector<uint64_t> open;
};
thread_local Correlations correlations;
std::atomic<uint64_t> current_session{0};

// Forgets the correlations of ops that began in an earlier session.
std::vector<uint64_t>& open_correlations() {
  const uint64_t now = current_session.load();
  if (correlations.session != now) correlations = {now, {}};
  return correlations.open;
}

bool has_times(const PhysicalDevice& device) {
  return device.device.has(sycl::aspect::queue_profiling);
}

// Leaves out a device whose clock cannot be read.
void compare_clocks(const std::set<const PhysicalDevice*>& devices, Clocks* clocks) {
  const WithoutGil released;
  for (const PhysicalDevice* device : devices) {
    if (!has_times(*device)) continue;
    try {
      auto& clock = (*clocks)[device];
      if (!clock) clock = std::make_unique<DeviceClock>(*device);
      clock->compare();
    } catch (const sycl::exception&) {
      clocks->erase(device);
    }
  }
}

size_t number_of(Recorder& all, const Stream& stream, size_t position) {
  const auto [found, made] =
      all.numbers.try_emplace({&stream, position}, all.queues.size());
  if (made) {
    const Ordinal& on = stream.ordinal();
    const bool queued = position != kOnHost;
    const PhysicalDevice& device = queued ? *on.devices[position] : on.home_device();
    all.queues.push_back(
        {stream.id().device_index(), device.id, device.name, stream.id().id(), queued});
    all.devices.push_back(&device);
    all.stamps.emplace_back();
  }
  return found->second;
}

// The ordinal whose home is the device, or -1. The current ordinal has precedence.
c10::DeviceIndex ordinal_at_home(int device_id) {
  const auto& ordinals = placement().ordinals;
  const auto is_home = [&](size_t index) {
    return index < ordinals.size() && ordinals[index].home_device().id == device_id;
  };
  const c10::DeviceIndex current = current_device();
  if (is_home(current)) return current;
  size_t index = 0;
  while (index < ordinals.size() && !is_home(index)) ++index;
  return index < ordinals.size() ? static_cast<c10::DeviceIndex>(index) : -1;
}

// An event with times that ends when `done` ends.
sycl::event stamp(Recorder& all, size_t queue, sycl::event done) {
  namespace property = sycl::property::queue;
  auto& stamps = all.stamps[queue];
  if (!stamps) {
    const PhysicalDevice& device = *all.devices[queue];
    stamps = std::make_unique<sycl::queue>(
        device.context, device.device,
        sycl::property_list{property::in_order{}, property::enable_profiling{}});
  }
  if (!order_after(*stamps, {done}))
    wait_for_end(done);  // the event is of another context
  return stamps->ext_oneapi_submit_barrier();
}

void wait_for(const std::vector<Pending>& pending) {
  std::map<size_t, sycl::event> last;  // queues are in order
  for (const Pending& each : pending) last.insert_or_assign(each.work.queue, each.done);
  wait_for_device([] { return false; },
                  [last]() mutable {
                    for (auto& [queue, done] : last) {
                      try {
                        wait_for_end(done);
                      } catch (const sycl::exception&) {
                        // The stream keeps the error for its next wait.
                      }
                    }
                  });
}

// Sets the times. False if they are not known. `before_ns`: the end of the previous
// work on its queue.
bool set_times(Pending& each, const DeviceClock& clock, int64_t before_ns) {
  using namespace sycl::info::event_profiling;
  try {
    const int64_t end = clock.to_host_ns(each.done.get_profiling_info<command_end>());
    const int64_t start =
        each.stamped ? std::max(each.work.start_ns, before_ns)
                     : clock.to_host_ns(each.done.get_profiling_info<command_start>());
    each.work.start_ns = std::min(start, end);
    each.work.end_ns = end;
    return true;
  } catch (const sycl::exception&) {
    return false;
  }
}

}  // namespace

void begin_recording() {
  Clocks clocks;
  const Placement* now = in_bad_fork() ? nullptr : installed_placement();
  if (now != nullptr) {
    std::set<const PhysicalDevice*> devices;
    for (const Ordinal& each : now->ordinals) {
      devices.insert(each.devices.begin(), each.devices.end());
    }
    compare_clocks(devices, &clocks);
  }
  Recorder& all = recorder();
  std::lock_guard<Mutex> lock(all.mutex);
  all.clocks = std::move(clocks);
  ++current_session;
  work_is_recorded = true;
}

void note_work(Stream& stream, size_t position, const sycl::event& done,
               const DeviceWork& work) {
  if (is_capturing(stream)) return;
  const int64_t submitted = host_now_ns();
  const auto& open = open_correlations();
  std::string name = work.name != nullptr
                         ? work.name
                         : work.entry->get_info<sycl::info::kernel::function_name>();
  Recorder& all = recorder();
  std::lock_guard<Mutex> lock(all.mutex);
  if (!records_work()) return;
  const size_t queue = number_of(all, stream, position);
  const bool stamped = !stream.is_timed(position) && has_times(*all.devices[queue]);
  all.pending.push_back({{work.kind, std::move(name), work.bytes, queue,
                          open.empty() ? 0 : open.back(), submitted, submitted},
                         stamped ? stamp(all, queue, done) : done,
                         stamped});
}

void record_host_work(const std::string& op, int device_id, int64_t took_ns) {
  const int64_t end = host_now_ns();
  const c10::DeviceIndex index = ordinal_at_home(device_id);
  if (index < 0 || !ordinal(index).home_device().device.is_cpu()) return;
  const int64_t start = std::min(end, std::max(end - took_ns, waited_until_ns()));
  const auto& open = open_correlations();
  const Stream& stream = current_stream(index);
  Recorder& all = recorder();
  std::lock_guard<Mutex> lock(all.mutex);
  if (!records_work()) return;
  all.ended.push_back({WorkKind::kernel, op + " [native]", 0,
                       number_of(all, stream, kOnHost), open.empty() ? 0 : open.back(),
                       start, end});
}

Recording end_recording() {
  Recorder& all = recorder();
  work_is_recorded = false;
  Recording result;
  std::vector<Pending> pending;
  std::vector<const PhysicalDevice*> devices;
  Clocks clocks;
  {
    std::lock_guard<Mutex> lock(all.mutex);
    ++current_session;
    all.numbers.clear();
    all.stamps.clear();
    std::swap(result.queues, all.queues);
    std::swap(devices, all.devices);
    std::swap(pending, all.pending);
    std::swap(result.works, all.ended);
    std::swap(clocks, all.clocks);
  }
  if (in_bad_fork() || is_exiting()) {
    // A query of the driver would hang.
    result.lost = pending.size();
    return result;
  }
  wait_for(pending);
  compare_clocks({devices.begin(), devices.end()}, &clocks);
  std::vector<int64_t> ends(result.queues.size(), 0);
  for (Pending& each : pending) {
    const size_t queue = each.work.queue;
    const auto clock = clocks.find(devices[queue]);
    if (clock == clocks.end() || !set_times(each, *clock->second, ends[queue])) {
      ++result.lost;
      continue;
    }
    ends[queue] = each.work.end_ns;
    result.works.push_back(std::move(each.work));
  }
  return result;
}

void push_correlation(uint64_t id) {
  open_correlations().push_back(id);
}

void pop_correlation() {
  auto& open = open_correlations();
  if (!open.empty()) open.pop_back();
}

}  // namespace xpurt

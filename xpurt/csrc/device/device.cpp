#include "device/device.h"

#include <c10/util/Exception.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <optional>

#include "device/autograd_threads.h"
#include "device/open_contexts.h"
#include "device/opencl_devices.h"
#include "host/errors.h"
#include "host/gil.h"
#include "host/mutex.h"

namespace xpurt {
namespace {

// Note [Leaked on purpose]
// ~~~~~~~~~~~~~~~~~~~~~~~~
// Devices, contexts, placements and streams with their queues are never destroyed.
// Tensors, threads and the SYCL runtime's own static objects may outlive them at
// process exit, in an undefined order. And after a change of the mapping another thread
// may still use one of them. uninstall_placement() releases the cached memory, which is
// the costly part. A mapping that is installed again gets its earlier objects. So what
// is kept grows with the number of different mappings of a process, not with the number
// of changes.
struct Resolved {
  std::string mapping;
  std::string remark;
  uint64_t epoch;
  bool overflows;
  std::vector<std::vector<sycl::device>> ordinals;
};

struct Table {
  Mutex mutex{Rank::placements};
  std::vector<std::unique_ptr<PhysicalDevice>> devices;
  std::vector<std::unique_ptr<Placement>> placements;
  std::optional<Resolved> resolved;  // empty once it is opened
  std::function<void()> resolver;
};

Table& table() {
  static Table* const leaked = new Table;
  return *leaked;
}

std::atomic<const Placement*> installed{nullptr};
std::atomic<size_t> resolved_count{0};
std::atomic<uint64_t> epoch{0};
std::atomic<bool> bad_fork{false};
std::atomic<c10::DeviceIndex> guard_count{16};
std::atomic<bool> exiting{false};
void (*finish_work)() = nullptr;

struct CurrentDevice {
  c10::DeviceIndex index = 0;
  uint64_t epoch = 0;  // when it was set, or was last found valid
};
thread_local CurrentDevice current;

// Registered after the driver was loaded, so that it runs before the driver ends. See
// Note [Exit].
void finish_at_exit() {
  if (in_bad_fork()) return;
  try {
    if (finish_work != nullptr) finish_work();
  } catch (const std::exception&) {
    // The process ends: no caller is left to handle the error.
  }
  exiting = true;
}

// The current device may no longer exist. Without a placement this is not known yet.
void follow_mapping() noexcept {
  const Placement* now = installed.load();
  if (now == nullptr) return;
  if (static_cast<size_t>(current.index) >= now->ordinals.size()) current.index = 0;
  current.epoch = now->epoch;
}

[[noreturn]] void fail_out_of_range(const Placement& now, size_t index) {
  const size_t count = now.ordinals.size();
  const std::string there_are =
      count == 1 ? "one device, xpu:0"
                 : c10::str(count, " devices, xpu:0 to xpu:", count - 1);
  throw_mapping_error(c10::str("xpu:", index, " is out of range: mapping \"",
                               now.mapping, "\" has ", there_are,
                               now.remark.empty() ? "" : ". ", now.remark));
}

void on_first_placement() {
  refuse_forks();
  let_python_end();
  std::atexit(finish_at_exit);
}

// Note [Contexts]
// ~~~~~~~~~~~~~~~
// A root device is used in its platform's default context. Other SYCL libraries of the
// process (dpctl, dpnp) allocate there, too, so USM pointers can be exchanged.
// Sub-devices get a context each: in a common one, a queue's memcpy between the
// allocations of two sub-devices of one CPU hangs. Events work across contexts.
sycl::context context_of(const sycl::device& device) {
  using parent = sycl::info::device::partition_type_property;
  const bool is_root =
      device.get_info<parent>() == sycl::info::partition_property::no_partition;
  return is_root ? device.get_platform().khr_get_default_context()
                 : sycl::context(device);
}

PhysicalDevice& physical_device(const sycl::device& device) {
  auto& known = table().devices;
  for (auto& candidate : known) {
    if (candidate->device == device) return *candidate;
  }
  auto made = std::make_unique<PhysicalDevice>();
  made->device = device;
  made->context = context_of(device);
  made->name = device.get_info<sycl::info::device::name>();
  made->id = static_cast<int>(known.size());
  made->is_cpu = device.is_cpu();
  made->is_accelerator = is_accelerator(device);
  made->system_usm = device.has(sycl::aspect::usm_system_allocations);
  made->host_accessible = made->is_cpu || made->system_usm;
  made->has_fp64 = device.has(sycl::aspect::fp64);
  made->has_fp16 = device.has(sycl::aspect::fp16);
  made->is_opencl = device.get_backend() == kOpenCL;
  made->total_memory = device.get_info<sycl::info::device::global_mem_size>();
  known.push_back(std::move(made));
  return *known.back();
}

// Note [Overflow]
// ~~~~~~~~~~~~~~~
// Under the mapping GPU a model may be larger than the GPU's memory. On request, an
// ordinal then has two devices, as under AUTO: the GPU first, and a CPU device. All
// memory is at home, which is the CPU device's, and the GPU works on replicas: what it
// uses is copied there, and evicted where it has no room (Note [Eviction]). The devices
// are not compared: the GPU runs what it can, and home only the rest.
Ordinal make_ordinal(const std::vector<sycl::device>& devices, bool overflows) {
  Ordinal result;
  result.overflows = overflows;
  for (const sycl::device& device : devices) {
    result.devices.push_back(&physical_device(device));
  }
  // A GPU that the host can read is no home under overflow: its memory may be small.
  for (size_t i = overflows ? 1 : 0; i < result.devices.size(); ++i) {
    if (result.devices[i]->host_accessible) {
      result.home = i;
      break;
    }
  }
  return result;
}

bool are_same(const Ordinal& one, const Ordinal& other) {
  // The home follows from these.
  return one.devices == other.devices && one.overflows == other.overflows;
}

// Returns an equal earlier placement if there is one, or else a new one.
Placement& placement_of(const Resolved& resolved) {
  std::vector<Ordinal> ordinals;
  for (const auto& devices : resolved.ordinals) {
    ordinals.push_back(make_ordinal(devices, resolved.overflows));
  }
  for (auto& known : table().placements) {
    if (known->mapping != resolved.mapping || known->remark != resolved.remark ||
        !std::ranges::equal(known->ordinals, ordinals, are_same)) {
      continue;
    }
    // Other threads may still read the old number.
    std::atomic_ref<uint64_t>(known->epoch).store(resolved.epoch);
    return *known;
  }
  table().placements.push_back(std::make_unique<Placement>(Placement{
      resolved.mapping, resolved.remark, resolved.epoch, std::move(ordinals)}));
  return *table().placements.back();
}

void resolve() {
  TORCH_CHECK(table().resolver,
              "xpurt's C++ library is loaded, but its Python package is not: no "
              "mapping can be resolved. Use `import xpurt`.");
  table().resolver();
}

void check_fork() {
  TORCH_CHECK(!in_bad_fork(),
              "Cannot re-initialize XPU in forked subprocess. To use XPU with "
              "multiprocessing, you must use the 'spawn' start method");
}

}  // namespace

c10::DeviceIndex guard_device_count() noexcept {
  return guard_count.load();
}

void set_guard_device_count(c10::DeviceIndex count) {
  TORCH_CHECK_VALUE(count >= 1 && count <= kMaxDevices, "1 to ",
                    static_cast<int>(kMaxDevices), " devices; found ",
                    static_cast<int>(count));
  guard_count = count;
}

void set_placement_resolver(std::function<void()> resolver) {
  table().resolver = std::move(resolver);
}

void install_placement(const std::string& mapping,
                       const std::vector<std::vector<DevicePointer>>& ordinals,
                       const std::string& remark, bool overflows) {
  check_fork();
  const int most = guard_device_count();
  TORCH_CHECK_VALUE(!ordinals.empty() && ordinals.size() <= static_cast<size_t>(most),
                    "a placement has 1 to ", most, " ordinals; found ",
                    ordinals.size());
  std::lock_guard<Mutex> lock(table().mutex);
  TORCH_CHECK(installed.load() == nullptr && !table().resolved,
              "a placement is installed already");
  Resolved made{mapping, remark, 0, overflows, {}};
  for (const auto& pointers : ordinals) {
    // Sets of an ordinal's devices are words with a bit per device.
    TORCH_CHECK_VALUE(!pointers.empty() && pointers.size() <= kMaxDevices,
                      "an ordinal has 1 to ", static_cast<int>(kMaxDevices),
                      " devices; found ", pointers.size());
    auto& devices = made.ordinals.emplace_back();
    for (DevicePointer pointer : pointers) {
      devices.push_back(*reinterpret_cast<const sycl::device*>(pointer));
    }
  }
  made.epoch = ++epoch;
  resolved_count = made.ordinals.size();
  table().resolved = std::move(made);
}

// Note [Opening the contexts]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~
// The first context of the OpenCL CPU driver starts its threads, which a forked process
// does not have. So contexts are made at the first use of a device, and not for the
// number of devices: a process that only queries this number can still fork, and use
// xpu in the child.
void open_placement() {
  check_fork();
  std::lock_guard<Mutex> lock(table().mutex);
  if (!table().resolved) return;  // another thread has opened it
  const Resolved& resolved = *table().resolved;
  static std::once_flag once;
  std::call_once(once, on_first_placement);
  Placement& made = placement_of(resolved);
  open_autograd_threads();
  installed = &made;
  table().resolved.reset();
}

// Note [Use and change]
// ~~~~~~~~~~~~~~~~~~~~~
// Consider two threads: one makes the first tensor, one removes the placement because
// it has found no tensor. The first counts its tensor, then checks that the placement
// is still installed, and starts again if it is not. The second removes the placement,
// then counts, and puts it back if there is a tensor. In any order, one of them
// observes the other.
bool uninstall_placement(const std::function<bool()>& in_use) {
  std::lock_guard<Mutex> lock(table().mutex);
  const Placement* before = installed.exchange(nullptr);
  if (in_use()) {
    installed = before;
    return false;
  }
  table().resolved.reset();
  resolved_count = 0;
  ++epoch;
  return true;
}

bool is_installed(uint64_t wanted) noexcept {
  const Placement* now = installed.load();
  return now != nullptr && now->epoch == wanted;
}

const Placement* installed_placement() noexcept {
  return installed.load();
}

const PhysicalDevice* find_physical_device(int id) noexcept {
  std::lock_guard<Mutex> lock(table().mutex);
  const auto& known = table().devices;
  return id >= 0 && static_cast<size_t>(id) < known.size() ? known[id].get() : nullptr;
}

uint64_t placement_epoch() noexcept {
  return epoch.load();
}

void refuse_forks() {
  static const int once = pthread_atfork(nullptr, nullptr, [] { bad_fork = true; });
  (void)once;
}

bool in_bad_fork() noexcept {
  return bad_fork.load(std::memory_order_relaxed);
}

void before_driver_ends(void (*finish)()) {
  finish_work = finish;
}

bool is_exiting() noexcept {
  return exiting.load(std::memory_order_relaxed);
}

const Placement& placement() {
  check_fork();
  if (const Placement* found = installed.load(std::memory_order_acquire)) {
    return *found;
  }
  // Repeated if another thread has just removed what was resolved here.
  constexpr int kAttempts = 8;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    if (resolved_count.load() == 0) resolve();
    open_placement();
    if (const Placement* found = installed.load()) return *found;
  }
  TORCH_CHECK(false, "no xpu mapping could be installed");
}

c10::DeviceIndex device_count() noexcept {
  if (in_bad_fork()) return 0;
  try {
    if (resolved_count.load() == 0) resolve();
    return static_cast<c10::DeviceIndex>(resolved_count.load());
  } catch (...) {
    return 0;
  }
}

const Ordinal& ordinal(c10::DeviceIndex index) {
  const Placement& now = placement();
  if (index == -1) index = current_device();
  // PyTorch keeps an index in a signed byte: 200 arrives as a negative number.
  const size_t wanted = static_cast<uint8_t>(index);
  if (wanted >= now.ordinals.size()) fail_out_of_range(now, wanted);
  return now.ordinals[wanted];
}

c10::DeviceIndex current_device() noexcept {
  if (C10_UNLIKELY(current.epoch != epoch.load(std::memory_order_relaxed))) {
    follow_mapping();
  }
  return current.index;
}

c10::DeviceIndex exchange_device(c10::DeviceIndex index) noexcept {
  const c10::DeviceIndex previous = current_device();
  if (index >= 0) current = {index, epoch.load()};
  return previous;
}

}  // namespace xpurt

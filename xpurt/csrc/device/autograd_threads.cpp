#include "device/autograd_threads.h"

#include <pthread.h>
#include <torch/csrc/autograd/engine.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "device/device.h"
#include "host/gil.h"
#include "host/mutex.h"
#include "host/worker.h"

namespace xpurt {
namespace {

// Note [Autograd's threads]
// ~~~~~~~~~~~~~~~~~~~~~~~~~
// At the first backward of a process the autograd engine gets the number of devices
// from every guard, starts that many threads and makes a table of their queues. The
// table never grows; a device beyond it is an internal error. Once the engine has such
// threads, it refuses every backward in a forked child. So the guard reports 0 devices
// until an xpu device is used: a program that only imports xpurt gets no threads and
// forks as before. From the first use on the guard reports XPURT_MAX_DEVICES, for any
// number of ordinals, since mappings may change. If the engine has made its table
// before that, the table is extended here.
std::atomic<bool> in_use{false};
Mutex opening{Rank::autograd_threads};

using torch::autograd::Engine;
using torch::autograd::ReadyQueue;
using Queues = std::vector<std::shared_ptr<ReadyQueue>>;

// Gives access to protected members of Engine; never instantiated.
struct EngineTable : Engine {
  static Queues& queues(Engine& engine) {
    return engine.*(&EngineTable::device_ready_queues_);
  }
  static bool has_started(Engine& engine) {
    return (engine.*(&EngineTable::thread_pool_shared_)) != nullptr;
  }
  static void open_pool(Engine& engine) {
    engine.*(&EngineTable::thread_pool_shared_) = std::make_shared<ThreadPoolShared>();
  }
};

// Note [Autograd's threads after a fork]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// A forked child makes a new engine. But an engine starts once per process, and a fork
// counts as the same process: if the parent's engine had started, the child's never
// starts. CPU tensors do not need the start. For xpu tensors, this code makes what the
// start would have made.
std::atomic<bool> started_before_fork{false};

void before_fork() {
  if (EngineTable::has_started(Engine::get_default_engine())) {
    started_before_fork = true;
  }
}

[[maybe_unused]] const int registered = pthread_atfork(before_fork, nullptr, nullptr);

// No other thread reads the table meanwhile: only tasks of a device read it, and no xpu
// tensor exists before the first placement. On a build with CUDA, a backward of CUDA
// tensors in another thread might; the old array is kept for it.
void extend(Engine& engine) {
  Queues& table = EngineTable::queues(engine);
  const size_t before = table.size();
  const auto wanted = static_cast<size_t>(guard_device_count());
  if (before >= wanted) return;
  Queues longer = table;
  while (longer.size() < wanted) longer.push_back(std::make_shared<ReadyQueue>());
  // Before the table: a queue without a thread would block a backward for ever.
  for (size_t i = before; i < wanted; ++i) {
    // Not counted among the threads that the engine waits for at exit: it would wait in
    // vain for a thread that has not begun to run by then.
    const bool started =
        start_thread("xpurt-autograd", [&engine, i, queue = longer[i]] {
          engine.thread_init(static_cast<int>(i), queue, /*should_increment=*/false);
        });
    TORCH_CHECK(
        started, "autograd wants ", wanted - before,
        " threads for xpu, and the system gave ", i - before,
        ". Let this user have more (ulimit -u), or set XPURT_MAX_DEVICES to the "
        "number of devices that are used.");
  }
  table.swap(longer);
  new Queues(std::move(longer));  // leaked
}

// Gives access to private members of ReadyQueue that libtorch does not export: the
// arguments of an explicit instantiation may name private members.
template <typename Tag, auto Member>
struct Expose {
  friend constexpr auto exposed(Tag) { return Member; }
};
struct Heap {
  friend constexpr auto exposed(Heap);
};
struct QueueMutex {
  friend constexpr auto exposed(QueueMutex);
};
struct Signal {
  friend constexpr auto exposed(Signal);
};
template struct Expose<Heap, &ReadyQueue::heap_>;
template struct Expose<QueueMutex, &ReadyQueue::mutex_>;
template struct Expose<Signal, &ReadyQueue::not_empty_>;

bool is_empty(ReadyQueue& queue) {
  std::lock_guard lock(queue.*exposed(QueueMutex{}));
  return (queue.*exposed(Heap{})).empty();
}

// Gives access to the tasks of a queue. Its operations are not exported either.
template <typename Queue>
struct Tasks : Queue {
  static auto& of(Queue& queue) { return queue.*(&Tasks::c); }
};

// Adds a task without a backward, which the engine's threads drop. False if there are
// other tasks, as the new one would have to be sorted among them.
bool push_nothing(ReadyQueue& queue) {
  using namespace torch::autograd;
  auto& heap = queue.*exposed(Heap{});
  {
    std::lock_guard lock(queue.*exposed(QueueMutex{}));
    auto& tasks = Tasks<std::remove_reference_t<decltype(heap)>>::of(heap);
    if (!tasks.empty()) return false;
    tasks.push_back(NodeTask({}, nullptr, InputBuffer(0)));
  }
  (queue.*exposed(Signal{})).notify_one();
  return true;
}

}  // namespace

// Note [Autograd's threads at exit]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// For its caller, a backward ends before the thread that ran its last task has released
// it. That thread needs the GIL for the release. If Python exits in between, Python
// ends the thread that requests the GIL, inside a destructor, and the process aborts. A
// thread that has taken the next task from its queue has released everything before. So
// each queue gets a task that does nothing.
void drain_autograd_threads() {
  if (!in_use.load() || in_bad_fork()) return;
  Engine& engine = Engine::get_default_engine();
  if (!EngineTable::has_started(engine)) return;
  WithoutGil released;
  const Queues queues = EngineTable::queues(engine);
  // A backward that never ends must not block the exit.
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  const auto wait_until = [&](auto condition) {
    while (!condition() && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  };
  for (const auto& queue : queues) wait_until([&] { return push_nothing(*queue); });
  for (const auto& queue : queues) wait_until([&] { return is_empty(*queue); });
}

c10::DeviceIndex autograd_device_count() noexcept {
  // Pairs with the fence below: if an engine starts and xpu is first used at the same
  // time, at least one of the two observes the other.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return in_use.load() && !in_bad_fork() ? guard_device_count() : c10::DeviceIndex(0);
}

void open_autograd_threads() {
  std::lock_guard<Mutex> lock(opening);
  if (in_use.exchange(true)) return;
  std::atomic_thread_fence(std::memory_order_seq_cst);
  Engine& engine = Engine::get_default_engine();
  if (EngineTable::has_started(engine)) {
    engine.initialize_device_threads_pool();  // waits for a start that is underway
  } else if (started_before_fork) {
    EngineTable::open_pool(engine);
  } else {
    return;  // it will start with all devices
  }
  try {
    extend(engine);
  } catch (...) {
    in_use = false;  // the next use tries again
    throw;
  }
}

}  // namespace xpurt

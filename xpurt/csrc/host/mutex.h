// Mutexes with a rank: the order in which a thread may take several of them.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <shared_mutex>
#include <string_view>

#include "host/api.h"

namespace xpurt {

// Note [Order of locks]
// ~~~~~~~~~~~~~~~~~~~~~
// Two threads that take two locks in opposite orders wait for each other forever. So
// every mutex has a rank, and a thread takes a lock only if its rank is above those of
// the locks that it holds. Two locks of one rank are never held together. The list
// begins with the outermost lock. Each line is a rank, and what is done under its lock
// that takes other locks.
//
// Python's lock (GIL) has a place in the list. Code under a lock above the GIL's line
// may call Python, or wait in a way that releases the GIL and takes it back. Such locks
// are only taken without the GIL: the holder may wait for the GIL, so a thread that has
// the GIL must not wait for the holder. Code under a lock below the GIL's line does
// neither, and any thread may wait for it.
//
// The dispatcher of PyTorch has a mutex as well. It calls listeners under this mutex,
// which take the locks from `replica_table` on. No op is registered under one of these.
//
// The order is checked if XPURT_CHECK_LOCKS=1 is set; the tests set it. A lock out of
// order then raises an error with both names, whether or not another thread is there to
// complete a deadlock. The check costs some nanoseconds per lock. Without it a lock
// costs one relaxed load more than a std::mutex (6.6 ns instead of 6.3).
//
// What was rejected: a mutex of its own for each stream's clock and each storage. Ops
// would take several of these in an order that depends on the operands. Instead, each
// step of an op takes one lock, and gives it up before the next step: the scheduler's
// lock is not held while the table of replicas is read, and a stream's lock not while
// the scheduler is told of a submission.
enum class Rank : uint8_t {
  // Above the GIL:
  lazy_core,             // runs graphs, which call Python and kernels
  emptying_cache,        // waits for the device, and frees cached memory
  kernel_build,          // a build calls Python for the source
  decomposition,         // Python defines the function of a row
  gil,                   // Python's own lock; no Mutex has this rank
  foreign_kernels,       // registers kernels with the dispatcher
  lazy_ops,              // the same
  cpu_kernels,           // the same
  captured_draws,        // allocates memory, and submits to a stream
  lazy_copies,           // a lazy copy's memory changes its owner
  onednn_devices,        // makes an engine
  onednn_plans,          // makes primitives
  meta_results,          // results of meta functions, which are made without the lock
  op_records,            // visits what the ops have learned
  refusals,              //
  refusal_warnings,      //
  scheduler,             // clocks and learned costs; reads cost curves
  device_costs,          //
  cost_table,            //
  forced_split,          //
  explanations,          //
  placements,            // looks for live memory; starts autograd's threads
  autograd_threads,      //
  memories,              // finds the memory of an ordinal
  replica_table,         // submits copies, waits for work, allocates copies
  host_writes,           //
  transfers,             //
  memory,                // hands a stream's queue to a user's allocator
  segments,              //
  memory_history,        //
  pinned_memory,         //
  known_storages,        //
  borrowed_memory,       //
  all_streams,           // visits the streams of each ordinal
  ordinal_streams,       //
  stream,                // submits: everything that a submission does
  stream_error,          // is taken by the handler of asynchronous errors
  captured_faults,       //
  stream_ends,           //
  capture,               //
  capture_waits,         //
  captured_storages,     //
  recorder,              // submits stamps to queues of its own
  onednn_device,         // finds a queue's oneDNN stream
  draw_starts,           //
  philox_state,          //
  kernel_tables,         // queries a device
  kernels,               //
  build_queue,           // gives a build to its worker
  gone_ops,              //
  worker,                //
  launches,              // starts a thread
  coalescing,            //
  peer_launch,           // sees whether a work has ended
  lazy_compiler,         //
  cpu_choices,           //
  prototype_generators,  //
  prototype_calls,       //
  prototype_memory,      //
  lazy_graphs,           //
  packed_weights,        //
};

// Whether locks are checked; set by check_locks().
extern XPURT_API std::atomic<bool> locks_are_checked;
void check_locks(bool on);

const char* name_of(Rank rank) noexcept;
// Throws for an unknown name.
Rank rank_named(std::string_view name);

// How many locks were taken out of order since the process began.
size_t locks_out_of_order() noexcept;

// Raises an error if a lock of this rank is out of order; else counts it as held.
XPURT_API void enter_lock(Rank rank);
XPURT_API void leave_lock(Rank rank) noexcept;

// Raises an error if the thread holds a lock below the GIL's line. Called where the GIL
// is about to be taken, or to be released and taken back.
XPURT_API void check_gil_order();

// A mutex of the standard library with a rank.
template <typename Native>
class RankedMutex {
 public:
  constexpr explicit RankedMutex(Rank rank) noexcept : rank_(rank) {}
  RankedMutex(const RankedMutex&) = delete;
  RankedMutex& operator=(const RankedMutex&) = delete;

  void lock() {
    before_lock();
    mutex_.lock();
  }
  void unlock() noexcept {
    mutex_.unlock();
    after_unlock();
  }
  // Of a std::shared_mutex alone.
  void lock_shared() {
    before_lock();
    mutex_.lock_shared();
  }
  void unlock_shared() noexcept {
    mutex_.unlock_shared();
    after_unlock();
  }

 private:
  friend class Condition;

  void before_lock() const {
    if (locks_are_checked.load(std::memory_order_relaxed)) [[unlikely]] {
      enter_lock(rank_);
    }
  }
  void after_unlock() const noexcept {
    if (locks_are_checked.load(std::memory_order_relaxed)) [[unlikely]] {
      leave_lock(rank_);
    }
  }

  Native mutex_;
  const Rank rank_;
};

using Mutex = RankedMutex<std::mutex>;
using SharedMutex = RankedMutex<std::shared_mutex>;

// A condition variable for a Mutex. Predicates do not throw.
class Condition {
 public:
  template <typename Predicate>
  void wait(std::unique_lock<Mutex>& lock, Predicate predicate) {
    std::unique_lock<std::mutex> native(lock.mutex()->mutex_, std::adopt_lock);
    condition_.wait(native, predicate);
    native.release();
  }
  template <typename Duration, typename Predicate>
  bool wait_for(std::unique_lock<Mutex>& lock, Duration patience, Predicate predicate) {
    std::unique_lock<std::mutex> native(lock.mutex()->mutex_, std::adopt_lock);
    const bool satisfied = condition_.wait_for(native, patience, predicate);
    native.release();
    return satisfied;
  }
  void notify_one() noexcept { condition_.notify_one(); }
  void notify_all() noexcept { condition_.notify_all(); }

 private:
  std::condition_variable condition_;
};

}  // namespace xpurt

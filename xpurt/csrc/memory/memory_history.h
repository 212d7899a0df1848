// The history of memory: allocations and frees, their times and call stacks.
#pragma once

#include <c10/core/CachingDeviceAllocator.h>

#include <array>
#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "device/device.h"
#include "host/mutex.h"

namespace xpurt {

using CallStack = std::shared_ptr<c10::GatheredContext>;
using c10::CachingDeviceAllocator::RecordContext;
using c10::CachingDeviceAllocator::TraceEntry;

class MemoryHistory {
 public:
  struct Options {
    RecordContext stacks = RecordContext::NEVER;  // events whose stacks are kept
    c10::CachingDeviceAllocator::CreateContextFn gather = nullptr;
    size_t max_entries = 1;  // of each device; the oldest are dropped
    std::set<TraceEntry::Action> skipped;
  };

  // Records from now on. clear: drops what was recorded before.
  void start(Options options, bool clear);
  // Stops, and drops everything.
  void stop();

  // Takes no other lock than its own, so that callers may hold theirs.
  void add(TraceEntry::Action action, c10::DeviceIndex device, size_t address,
           size_t bytes, c10::StreamId stream, c10::MempoolId_t pool,
           const CallStack& stack);

  // The entries of each of the first `devices`, the oldest first. Times are
  // microseconds of Unix time.
  std::vector<std::vector<TraceEntry>> entries(c10::DeviceIndex devices) const;

  CallStack gather() const;

 private:
  struct Ring {
    std::vector<TraceEntry> entries;
    size_t oldest = 0;
  };

  void clear();

  std::atomic<c10::CachingDeviceAllocator::CreateContextFn> gather_{nullptr};
  mutable Mutex mutex_{Rank::memory_history};
  Options options_;
  std::array<Ring, kMaxDevices> rings_;
};

// The history of all devices. Leaked: entries hold Python's frames, which must not be
// freed after Python has ended.
MemoryHistory& memory_history();

// Outside of the history, for a cheap check at every allocation.
inline std::atomic<bool> history_is_on{false};
inline std::atomic<RecordContext> stacks_kept{RecordContext::NEVER};

inline bool is_recording() {
  return C10_UNLIKELY(history_is_on.load(std::memory_order_relaxed));
}

// The caller's stack if stacks of this kind of event are kept; otherwise nullptr. Takes
// the GIL, so the caller must hold no lock.
inline CallStack gather_stack(RecordContext event) {
  if (C10_LIKELY(stacks_kept.load(std::memory_order_relaxed) < event)) return nullptr;
  return memory_history().gather();
}

}  // namespace xpurt

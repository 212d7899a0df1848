// The history of memory: what happened to it, when, and who asked for it.
#pragma once

#include <c10/core/CachingDeviceAllocator.h>

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "device/device.h"

namespace xpurt {

using CallStack = std::shared_ptr<c10::GatheredContext>;
using c10::CachingDeviceAllocator::RecordContext;
using c10::CachingDeviceAllocator::TraceEntry;

class MemoryHistory {
 public:
  struct Options {
    RecordContext stacks = RecordContext::NEVER;  // whose stacks are kept
    c10::CachingDeviceAllocator::CreateContextFn gather = nullptr;
    size_t max_entries = 1;  // of each device; older ones go
    std::set<TraceEntry::Action> skipped;
  };

  // Records from now on. clear: forgets what was recorded before.
  void start(Options options, bool clear);
  // Forgets everything.
  void stop();

  // A leaf: takes no other lock, so that callers may hold theirs.
  void add(TraceEntry::Action action, c10::DeviceIndex device, size_t address,
           size_t bytes, c10::StreamId stream, c10::MempoolId_t pool,
           const CallStack& stack);

  // Of each of the first `devices`, the oldest entry first; times are microseconds
  // of Unix time.
  std::vector<std::vector<TraceEntry>> entries(c10::DeviceIndex devices) const;

  CallStack gather() const;

 private:
  struct Ring {
    std::vector<TraceEntry> entries;
    size_t oldest = 0;
  };

  void clear();

  std::atomic<c10::CachingDeviceAllocator::CreateContextFn> gather_{nullptr};
  mutable std::mutex mutex_;
  Options options_;
  std::array<Ring, kMaxDevices> rings_;
};

// Of all devices. Leaked: entries hold Python's frames, which must not be freed after
// Python's end.
MemoryHistory& memory_history();

// Beside the history, for those who ask at every allocation.
inline std::atomic<bool> history_is_on{false};
inline std::atomic<RecordContext> stacks_kept{RecordContext::NEVER};

inline bool is_recording() {
  return C10_UNLIKELY(history_is_on.load(std::memory_order_relaxed));
}

// The caller's stack, if that of such an event is kept; else nullptr. Takes the GIL:
// the caller holds no lock.
inline CallStack gather_stack(RecordContext event) {
  if (C10_LIKELY(stacks_kept.load(std::memory_order_relaxed) < event)) return nullptr;
  return memory_history().gather();
}

}  // namespace xpurt

#include "memory/memory_history.h"

#include <c10/util/ApproximateClock.h>

#include <algorithm>

namespace xpurt {
namespace {

// It converts times that are measured after it was made.
c10::ApproximateClockToUnixTimeConverter& clock() {
  static auto* const leaked = new c10::ApproximateClockToUnixTimeConverter;
  return *leaked;
}

}  // namespace

void MemoryHistory::start(Options options, bool clear_before) {
  clock();
  std::lock_guard<Mutex> lock(mutex_);
  const size_t limit = std::max<size_t>(options.max_entries, 1);
  for (Ring& ring : rings_) {
    auto& entries = ring.entries;
    std::rotate(entries.begin(), entries.begin() + static_cast<ptrdiff_t>(ring.oldest),
                entries.end());
    ring.oldest = 0;
    if (entries.size() > limit) {
      entries.erase(entries.begin(), entries.end() - static_cast<ptrdiff_t>(limit));
    }
  }
  if (clear_before) clear();
  options.max_entries = limit;
  options_ = std::move(options);
  gather_ = options_.gather;
  stacks_kept = options_.gather == nullptr ? RecordContext::NEVER : options_.stacks;
  history_is_on = true;
}

void MemoryHistory::stop() {
  std::lock_guard<Mutex> lock(mutex_);
  history_is_on = false;
  stacks_kept = RecordContext::NEVER;
  clear();
}

void MemoryHistory::clear() {
  for (Ring& ring : rings_) ring = {};
}

CallStack MemoryHistory::gather() const {
  const auto gather = gather_.load();
  return gather == nullptr ? nullptr : gather();
}

void MemoryHistory::add(TraceEntry::Action action, c10::DeviceIndex device,
                        size_t address, size_t bytes, c10::StreamId stream,
                        c10::MempoolId_t pool, const CallStack& stack) {
  std::lock_guard<Mutex> lock(mutex_);
  if (!history_is_on || options_.skipped.count(action) != 0) return;
  const bool keeps = stacks_kept.load() >= RecordContext::ALLOC;
  TraceEntry entry(action, device, address, bytes, reinterpret_cast<void*>(stream),
                   pool, c10::getApproximateTime(), keeps ? stack : nullptr);
  Ring& ring = rings_[device];
  if (ring.entries.size() < options_.max_entries) {
    ring.entries.push_back(std::move(entry));
    return;
  }
  ring.entries[ring.oldest] = std::move(entry);
  ring.oldest = (ring.oldest + 1) % ring.entries.size();
}

std::vector<std::vector<TraceEntry>> MemoryHistory::entries(
    c10::DeviceIndex devices) const {
  const auto to_unix_ns = clock().makeConverter();
  std::vector<std::vector<TraceEntry>> result(devices);
  std::lock_guard<Mutex> lock(mutex_);
  for (c10::DeviceIndex i = 0; i < devices; ++i) {
    result[i] = rings_[i].entries;
    std::rotate(result[i].begin(),
                result[i].begin() + static_cast<ptrdiff_t>(rings_[i].oldest),
                result[i].end());
    for (TraceEntry& entry : result[i]) {
      entry.time_.t_ = to_unix_ns(entry.time_.approx_t_) / 1000;
    }
  }
  return result;
}

MemoryHistory& memory_history() {
  static auto* const leaked = new MemoryHistory;
  return *leaked;
}

}  // namespace xpurt

#include "memory/segment_table.h"

#include <algorithm>

namespace xpurt {
namespace {
constexpr auto kRelaxed = std::memory_order_relaxed;
}  // namespace

void SegmentTable::set(Rows& rows, size_t index, const Row& from) {
  rows.row[index].start.store(from.start.load(kRelaxed), kRelaxed);
  rows.row[index].end.store(from.end.load(kRelaxed), kRelaxed);
  rows.row[index].segment.store(from.segment.load(kRelaxed), kRelaxed);
}

void SegmentTable::add(Segment* segment) {
  std::lock_guard<Mutex> lock(writers_);
  Rows* rows = rows_.load(kRelaxed);
  const size_t size = size_.load(kRelaxed);
  if (rows == nullptr || size == rows->capacity) {
    all_.push_back(std::make_unique<Rows>(rows == nullptr ? 64 : 2 * rows->capacity));
    Rows* grown = all_.back().get();
    for (size_t i = 0; i < size; ++i) set(*grown, i, rows->row[i]);
    rows = grown;
  }
  version_.fetch_add(1, kRelaxed);
  std::atomic_thread_fence(std::memory_order_release);
  const auto start = reinterpret_cast<uintptr_t>(segment->pointer);
  size_t index = size;
  for (; index > 0 && rows->row[index - 1].start.load(kRelaxed) > start; --index) {
    set(*rows, index, rows->row[index - 1]);
  }
  rows->row[index].start.store(start, kRelaxed);
  rows->row[index].end.store(start + segment->bytes, kRelaxed);
  rows->row[index].segment.store(segment, kRelaxed);
  // A reader that observes a new array also observes its size and its address.
  rows_.store(rows, std::memory_order_release);
  size_.store(size + 1, kRelaxed);
  version_.fetch_add(1, std::memory_order_release);
}

void SegmentTable::remove(Segment* segment) {
  std::lock_guard<Mutex> lock(writers_);
  Rows* rows = rows_.load(kRelaxed);
  const size_t size = size_.load(kRelaxed);
  version_.fetch_add(1, kRelaxed);
  std::atomic_thread_fence(std::memory_order_release);
  size_t kept = 0;
  for (size_t i = 0; i < size; ++i) {
    if (rows->row[i].segment.load(kRelaxed) == segment) continue;
    if (kept != i) set(*rows, kept, rows->row[i]);
    ++kept;
  }
  size_.store(kept, kRelaxed);
  version_.fetch_add(1, std::memory_order_release);
}

Segment* SegmentTable::find(const void* pointer) const noexcept {
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  for (;;) {
    const uint64_t version = version_.load(std::memory_order_acquire);
    Segment* found = nullptr;
    if (version % 2 == 0) {
      const Rows* rows = rows_.load(std::memory_order_acquire);
      size_t low = 0;
      // During a write, the size may belong to another array.
      size_t high =
          rows == nullptr ? 0 : std::min(size_.load(kRelaxed), rows->capacity);
      while (low < high) {
        const size_t middle = (low + high) / 2;
        if (rows->row[middle].start.load(kRelaxed) <= address) {
          low = middle + 1;
        } else {
          high = middle;
        }
      }
      if (low > 0 && address < rows->row[low - 1].end.load(kRelaxed)) {
        found = rows->row[low - 1].segment.load(kRelaxed);
      }
      std::atomic_thread_fence(std::memory_order_acquire);
      if (version_.load(kRelaxed) == version) return found;
    }
  }
}

}  // namespace xpurt

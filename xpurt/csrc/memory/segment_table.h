// Maps an address to the segment that contains it, without a lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "host/mutex.h"
#include "memory/block_pool.h"

namespace xpurt {

// Segments are added and removed rarely, while every free finds one. So readers take no
// lock, and read again if a writer was active meanwhile.
class SegmentTable {
 public:
  void add(Segment* segment);
  void remove(Segment* segment);

  // The result stays valid as long as the caller keeps one of its blocks allocated.
  Segment* find(const void* address) const noexcept;

 private:
  struct Row {
    std::atomic<uintptr_t> start;
    std::atomic<uintptr_t> end;
    std::atomic<Segment*> segment;
  };
  struct Rows {
    explicit Rows(size_t capacity) : capacity(capacity), row(new Row[capacity]()) {}
    size_t capacity;
    std::unique_ptr<Row[]> row;
  };

  void set(Rows& rows, size_t index, const Row& from);

  Mutex writers_{Rank::segments};
  std::atomic<uint64_t> version_{0};  // odd while a writer is active
  std::atomic<Rows*> rows_{nullptr};
  std::atomic<size_t> size_{0};
  // Outgrown arrays stay, for readers that still read them. All of them together are
  // smaller than the current one.
  std::vector<std::unique_ptr<Rows>> all_;
};

}  // namespace xpurt

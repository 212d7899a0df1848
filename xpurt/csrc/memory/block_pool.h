// Best-fit pools of memory: blocks are split, handed out, taken back and merged.
//
// This code does the accounting only. It accesses neither the memory itself nor a
// device, and takes no lock.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <vector>

namespace c10 {
struct GatheredContext;
}

namespace xpurt {

constexpr size_t kMinBlockBytes = 512;           // block sizes are multiples of it
constexpr size_t kSmallBytes = 1 << 20;          // the largest request of a small pool
constexpr size_t kSmallSegmentBytes = 2 << 20;   // segment size of a small pool
constexpr size_t kLargeSegmentBytes = 20 << 20;  // default segment size of a large pool
constexpr size_t kMinLargeBytes = 10 << 20;      // from this size on, a segment is the
constexpr size_t kRoundLargeBytes = 2 << 20;     // ... request rounded up to this

constexpr size_t kOwnSegmentBytes = 256 << 10;  // see Note [How much is reserved]

constexpr size_t kLargestKept = 32 << 10;   // see Note [Kept blocks]
constexpr size_t kMostKeptBytes = 1 << 20;  // of one pool

size_t round_block(size_t bytes);
// Bytes of the segment to allocate for a request. large: the segment size of a large
// pool.
size_t segment_bytes_for(size_t rounded, size_t large = kLargeSegmentBytes);

struct MemorySource;
struct Segment;
class BlockPool;

// A part of a segment. The blocks of a segment are linked in the order of addresses.
struct Block {
  char* pointer = nullptr;
  size_t bytes = 0;
  size_t requested = 0;
  Segment* segment = nullptr;
  Block* before = nullptr;
  Block* after = nullptr;
  Block* previous_free = nullptr;
  Block* next_free = nullptr;
  bool allocated = false;    // handed out, and not freed
  bool active = false;       // allocated, or freed with work of other streams pending,
                             // or kept
  uint32_t events = 0;       // pending events that delay its return to the pool
  std::vector<void*> users;  // the other streams that use it
  std::shared_ptr<c10::GatheredContext> stack;  // of its allocation, if recorded

  bool is_split() const { return before != nullptr || after != nullptr; }
};

// Memory from one allocation of the driver, or of another source.
struct Segment {
  Segment(void* pointer, size_t bytes, BlockPool& pool, void* owner);
  // The allocated block that starts at `address`, or nullptr.
  Block* allocated_at(const void* address) const;
  bool contains(const void* address) const {
    const char* at = static_cast<const char*>(address);
    return at >= pointer && at < pointer + bytes;
  }
  // True if the segment is one block, and that block is free.
  bool is_free() const { return !first->is_split() && !first->active; }
  Block*& start_at(const void* address) {
    return starts[(static_cast<const char*>(address) - pointer) >> shift];
  }

  char* pointer;
  size_t bytes;
  BlockPool* pool;
  void* owner;
  uint64_t number = 0;                   // among all segments that its pool ever had
  const MemorySource* source = nullptr;  // nullptr: the driver
  void* queue = nullptr;                 // the queue passed to the source
  std::shared_ptr<c10::GatheredContext> stack;
  int shift;
  Block* first = nullptr;
  // One slot for each minimum block size of the pool, so blocks have distinct slots.
  std::vector<Block*> starts;
};

// Note [Kept blocks]
// ~~~~~~~~~~~~~~~~~~
// An op on a few elements makes a result, and the program soon frees it. To split a
// block for that and to merge it again takes longer than the rest of the allocation.
// So a small block that is freed is kept as it is, in a list for its size, and the next
// request of this size takes it. Kept blocks are merged if a request finds no other
// block, if there are many, and before the free blocks are counted or shown. So no more
// memory is reserved than without them.
//
// Measured with callgrind: an allocation and a free of one element take 750
// instructions of the allocator, without those of the locks. They took 1,120.

// The segments of one stream, for small or for large blocks.
class BlockPool {
 public:
  explicit BlockPool(bool large) : large_(large) {}
  ~BlockPool();
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;

  bool large() const { return large_; }

  // Takes the smallest free block of at least `rounded` bytes, and marks it allocated
  // and active. Its tail returns to the pool if it is large enough to be useful.
  // nullptr if there is no such block.
  Block* take(size_t rounded) {
    if (rounded <= kLargestKept) {
      Block*& head = kept_[rounded / kMinBlockBytes];
      if (Block* block = head; block != nullptr) {
        head = block->next_free;
        block->next_free = nullptr;
        kept_bytes_ -= rounded;
        block->allocated = true;
        return block;
      }
    }
    return take_free(rounded);
  }
  // The block that it takes if none is kept, left in the pool.
  Block* best_fit(size_t rounded) const;

  // Returns a block to the pool, and merges it with its free neighbours.
  void give_back(Block* block);

  // Returns a block to the pool as it is, for the next request of its size. False if
  // it is too large, or if too many are kept. See Note [Kept blocks].
  bool keep(Block* block) {
    if (block->bytes > kLargestKept || kept_bytes_ + block->bytes > kMostKeptBytes) {
      return false;
    }
    block->requested = 0;
    Block*& head = kept_[block->bytes / kMinBlockBytes];
    block->next_free = head;
    head = block;
    kept_bytes_ += block->bytes;
    return true;
  }
  // Gives back all kept blocks.
  void merge_kept();
  bool has_kept() const { return kept_bytes_ != 0; }

  Segment& add_segment(void* pointer, size_t bytes, void* owner);

  // Takes a segment that was just added, as one block, marked allocated and active.
  Block* take_whole(Segment& segment);

  // Removes a segment whose only block is inactive from the pool.
  std::unique_ptr<Segment> take_out(Segment& segment);

  // Removes the segments without an active block from the pool. Kept blocks count as
  // active.
  std::vector<std::unique_ptr<Segment>> take_free_segments();

  const std::vector<std::unique_ptr<Segment>>& segments() const { return segments_; }
  // Free blocks that share their segment with other blocks. Emptying the cache cannot
  // release them.
  size_t inactive_split_blocks() const { return inactive_split_blocks_; }
  size_t inactive_split_bytes() const { return inactive_split_bytes_; }

 private:
  // Small blocks: a list for each size, and a bit for each list that is not empty.
  static constexpr size_t kLists = kSmallSegmentBytes / kMinBlockBytes + 1;
  static constexpr size_t kWords = kLists / 64 + 1;
  // Segments by age, not by address: the system chooses addresses at random, and equal
  // programs would reserve different amounts.
  struct BySizeThenPlace {
    bool operator()(const Block* a, const Block* b) const {
      if (a->bytes != b->bytes) return a->bytes < b->bytes;
      if (a->segment == b->segment) return a->pointer < b->pointer;
      return a->segment->number < b->segment->number;
    }
    using is_transparent = void;
    bool operator()(const Block* a, size_t bytes) const { return a->bytes < bytes; }
    bool operator()(size_t bytes, const Block* a) const { return bytes < a->bytes; }
  };

  Block* take_free(size_t rounded);
  void insert_free(Block* block);
  void erase_free(Block* block);
  Block* new_block();
  void recycle(Block* block);

  const bool large_;
  std::vector<Block*> lists_;
  std::array<uint64_t, kWords> words_{};
  std::array<uint64_t, 2> summary_{};  // a bit for each word that is not zero
  std::set<Block*, BySizeThenPlace> tree_;
  std::vector<std::unique_ptr<Segment>> segments_;
  uint64_t segments_added_ = 0;
  std::array<Block*, kLargestKept / kMinBlockBytes + 1> kept_{};  // lists, by size
  size_t kept_bytes_ = 0;
  Block* spare_ = nullptr;  // unused Block objects, linked by next_free
  size_t inactive_split_blocks_ = 0;
  size_t inactive_split_bytes_ = 0;
};

// Blocks of all sizes. Small blocks have their own pool, so that they do not fragment
// the memory that large blocks need.
struct BlockPools {
  BlockPool small{false};
  BlockPool large{true};

  BlockPool& of(size_t rounded) { return rounded <= kSmallBytes ? small : large; }
  bool contains(const BlockPool* pool) const {
    return pool == &small || pool == &large;
  }
};

}  // namespace xpurt

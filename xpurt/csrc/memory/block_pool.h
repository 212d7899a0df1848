// Best-fit pools of memory: blocks are split, handed out, taken back and merged.
//
// Nothing here touches the memory it keeps account of, nor a device, nor a lock.
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

constexpr size_t kMinBlockBytes = 512;          // every block is a multiple of it
constexpr size_t kSmallBytes = 1 << 20;         // the largest request of a small pool
constexpr size_t kSmallSegmentBytes = 2 << 20;  // what a small pool asks the driver for
constexpr size_t kLargeSegmentBytes = 20 << 20;  // and a large pool by default, up to
constexpr size_t kMinLargeBytes = 10 << 20;      // ... requests of this size; then
constexpr size_t kRoundLargeBytes = 2 << 20;     // the request, rounded to this

constexpr size_t kOwnSegmentBytes = 256 << 10;  // see Note [How much is reserved]

size_t round_block(size_t bytes);
// large: what a large pool asks the driver for.
size_t segment_bytes_for(size_t rounded, size_t large = kLargeSegmentBytes);

struct MemorySource;
struct Segment;
class BlockPool;

// A piece of a segment. Pieces of a segment are linked in the order of addresses.
struct Block {
  char* pointer = nullptr;
  size_t bytes = 0;
  size_t requested = 0;
  Segment* segment = nullptr;
  Block* before = nullptr;
  Block* after = nullptr;
  Block* previous_free = nullptr;
  Block* next_free = nullptr;
  bool allocated = false;    // handed out, and not given back
  bool active = false;       // allocated, or freed with work of other streams pending
  uint32_t events = 0;       // that must complete before it can come back
  std::vector<void*> users;  // the other streams that use it
  std::shared_ptr<c10::GatheredContext> stack;  // of who allocated it, if recorded

  bool is_split() const { return before != nullptr || after != nullptr; }
};

// Memory that the driver, or another source, gave in one piece.
struct Segment {
  Segment(void* pointer, size_t bytes, BlockPool& pool, void* owner);
  // The allocated block that starts at `address`, or nullptr.
  Block* allocated_at(const void* address) const;
  bool contains(const void* address) const {
    const char* at = static_cast<const char*>(address);
    return at >= pointer && at < pointer + bytes;
  }
  // Whether it is one block, and that block is free.
  bool is_free() const { return !first->is_split() && !first->active; }
  Block*& start_at(const void* address) {
    return starts[(static_cast<const char*>(address) - pointer) >> shift];
  }

  char* pointer;
  size_t bytes;
  BlockPool* pool;
  void* owner;
  const MemorySource* source = nullptr;  // nullptr: the driver
  void* queue = nullptr;                 // that the source was given
  std::shared_ptr<c10::GatheredContext> stack;
  int shift;
  Block* first = nullptr;
  // No two blocks start in the same slot: a slot is the smallest block of the pool.
  std::vector<Block*> starts;
};

// The segments of one stream and one kind of size.
class BlockPool {
 public:
  explicit BlockPool(bool large) : large_(large) {}
  ~BlockPool();
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;

  bool large() const { return large_; }

  // The smallest free block of at least `rounded` bytes, marked allocated and
  // active; its tail goes back into the pool if it is large enough to be of use.
  // nullptr if there is none.
  Block* take(size_t rounded);
  // That block, left where it is.
  Block* best_fit(size_t rounded) const;

  // An inactive block comes back and is merged with its free neighbours.
  void give_back(Block* block);

  Segment& add_segment(void* pointer, size_t bytes, void* owner);

  // A segment that was just added, as one block, marked allocated and active.
  Block* take_whole(Segment& segment);

  // Takes a segment whose only block is inactive out of the pool.
  std::unique_ptr<Segment> take_out(Segment& segment);

  // Takes the segments without an active block out of the pool.
  std::vector<std::unique_ptr<Segment>> take_free_segments();

  const std::vector<std::unique_ptr<Segment>>& segments() const { return segments_; }
  // Free blocks that share their segment with others, so that emptying the cache
  // cannot return them.
  size_t inactive_split_blocks() const { return inactive_split_blocks_; }
  size_t inactive_split_bytes() const { return inactive_split_bytes_; }

 private:
  // Small blocks: a list for each size, and a bit for each list that is not empty.
  static constexpr size_t kLists = kSmallSegmentBytes / kMinBlockBytes + 1;
  static constexpr size_t kWords = kLists / 64 + 1;
  struct BySizeThenAddress {
    bool operator()(const Block* a, const Block* b) const {
      return a->bytes != b->bytes ? a->bytes < b->bytes : a->pointer < b->pointer;
    }
    using is_transparent = void;
    bool operator()(const Block* a, size_t bytes) const { return a->bytes < bytes; }
    bool operator()(size_t bytes, const Block* a) const { return bytes < a->bytes; }
  };

  void insert_free(Block* block);
  void erase_free(Block* block);
  Block* new_block();
  void recycle(Block* block);

  const bool large_;
  std::vector<Block*> lists_;
  std::array<uint64_t, kWords> words_{};
  std::array<uint64_t, 2> summary_{};  // a bit for each word that is not zero
  std::set<Block*, BySizeThenAddress> tree_;
  std::vector<std::unique_ptr<Segment>> segments_;
  Block* spare_ = nullptr;  // unused Block objects, linked by next_free
  size_t inactive_split_blocks_ = 0;
  size_t inactive_split_bytes_ = 0;
};

// Blocks of all sizes. Small ones have a pool of their own, so that they do not break
// up the memory that large ones need.
struct BlockPools {
  BlockPool small{false};
  BlockPool large{true};

  BlockPool& of(size_t rounded) { return rounded <= kSmallBytes ? small : large; }
  bool contains(const BlockPool* pool) const {
    return pool == &small || pool == &large;
  }
};

}  // namespace xpurt

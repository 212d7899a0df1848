#include "memory/block_pool.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace xpurt {

size_t round_block(size_t bytes) {
  if (bytes < kMinBlockBytes) return kMinBlockBytes;
  return (bytes + kMinBlockBytes - 1) / kMinBlockBytes * kMinBlockBytes;
}

size_t segment_bytes_for(size_t rounded, size_t large) {
  if (rounded <= kSmallBytes) return kSmallSegmentBytes;
  if (rounded < kMinLargeBytes) return large;
  return (rounded + kRoundLargeBytes - 1) / kRoundLargeBytes * kRoundLargeBytes;
}

Segment::Segment(void* pointer, size_t bytes, BlockPool& pool, void* owner)
    : pointer(static_cast<char*>(pointer)),
      bytes(bytes),
      pool(&pool),
      owner(owner),
      shift(std::countr_zero(pool.large() ? kSmallBytes : kMinBlockBytes)),
      starts((bytes >> shift) + 1) {}

Block* Segment::allocated_at(const void* address) const {
  if (!contains(address)) return nullptr;
  Block* found = starts[(static_cast<const char*>(address) - pointer) >> shift];
  return found != nullptr && found->pointer == address && found->allocated ? found
                                                                           : nullptr;
}

BlockPool::~BlockPool() {
  for (auto& segment : segments_) {
    for (Block* block = segment->first; block != nullptr;) {
      Block* after = block->after;
      delete block;
      block = after;
    }
  }
  while (spare_ != nullptr) {
    Block* next = spare_->next_free;
    delete spare_;
    spare_ = next;
  }
}

Block* BlockPool::new_block() {
  if (spare_ == nullptr) return new Block;
  Block* block = spare_;
  spare_ = block->next_free;
  block->next_free = nullptr;
  return block;
}

void BlockPool::recycle(Block* block) {
  block->segment->start_at(block->pointer) = nullptr;
  block->before = block->after = block->previous_free = nullptr;
  block->next_free = spare_;
  spare_ = block;
}

Segment& BlockPool::add_segment(void* pointer, size_t bytes, void* owner) {
  if (!large_ && lists_.empty()) lists_.resize(kLists);
  segments_.push_back(std::make_unique<Segment>(pointer, bytes, *this, owner));
  Segment& segment = *segments_.back();
  segment.number = segments_added_++;
  Block* whole = new_block();
  whole->pointer = segment.pointer;
  whole->bytes = bytes;
  whole->segment = &segment;
  segment.first = whole;
  segment.start_at(whole->pointer) = whole;
  insert_free(whole);
  return segment;
}

void BlockPool::insert_free(Block* block) {
  if (block->is_split()) {
    ++inactive_split_blocks_;
    inactive_split_bytes_ += block->bytes;
  }
  if (large_) {
    tree_.insert(block);
    return;
  }
  const size_t index = block->bytes / kMinBlockBytes;
  Block*& head = lists_[index];
  block->previous_free = nullptr;
  block->next_free = head;
  if (head != nullptr) head->previous_free = block;
  head = block;
  words_[index / 64] |= uint64_t{1} << (index % 64);
  summary_[index / 4096] |= uint64_t{1} << (index / 64 % 64);
}

void BlockPool::erase_free(Block* block) {
  if (block->is_split()) {
    --inactive_split_blocks_;
    inactive_split_bytes_ -= block->bytes;
  }
  if (large_) {
    tree_.erase(block);
    return;
  }
  const size_t index = block->bytes / kMinBlockBytes;
  if (block->next_free != nullptr)
    block->next_free->previous_free = block->previous_free;
  if (block->previous_free != nullptr) {
    block->previous_free->next_free = block->next_free;
    return;
  }
  lists_[index] = block->next_free;
  if (block->next_free != nullptr) return;
  words_[index / 64] &= ~(uint64_t{1} << (index % 64));
  if (words_[index / 64] == 0) {
    summary_[index / 4096] &= ~(uint64_t{1} << (index / 64 % 64));
  }
}

Block* BlockPool::best_fit(size_t rounded) const {
  if (large_) {
    const auto found = tree_.lower_bound(rounded);
    return found == tree_.end() ? nullptr : *found;
  }
  const size_t index = rounded / kMinBlockBytes;
  if (lists_.empty() || index >= kLists) return nullptr;
  size_t word = index / 64;
  uint64_t bits = words_[word] & (~uint64_t{0} << (index % 64));
  if (bits == 0) {
    ++word;
    size_t half = word / 64;
    if (half >= summary_.size()) return nullptr;
    uint64_t words = summary_[half] & (~uint64_t{0} << (word % 64));
    while (words == 0) {
      if (++half == summary_.size()) return nullptr;
      words = summary_[half];
    }
    word = half * 64 + std::countr_zero(words);
    bits = words_[word];
  }
  return lists_[word * 64 + std::countr_zero(bits)];
}

Block* BlockPool::take_free(size_t rounded) {
  Block* block = best_fit(rounded);
  if (block == nullptr && has_kept()) {
    merge_kept();
    block = best_fit(rounded);
  }
  if (block == nullptr) return nullptr;
  erase_free(block);
  const size_t left = block->bytes - rounded;
  if (large_ ? left > kSmallBytes : left >= kMinBlockBytes) {
    Block* tail = new_block();
    tail->pointer = block->pointer + rounded;
    tail->bytes = left;
    tail->segment = block->segment;
    tail->before = block;
    tail->after = block->after;
    if (tail->after != nullptr) tail->after->before = tail;
    block->after = tail;
    block->bytes = rounded;
    block->segment->start_at(tail->pointer) = tail;
    insert_free(tail);
  }
  block->allocated = block->active = true;
  return block;
}

Block* BlockPool::take_whole(Segment& segment) {
  Block* block = segment.first;
  erase_free(block);
  block->allocated = block->active = true;
  return block;
}

void BlockPool::merge_kept() {
  if (!has_kept()) return;
  kept_bytes_ = 0;
  for (Block*& head : kept_) {
    Block* block = std::exchange(head, nullptr);
    while (block != nullptr) {
      Block* next = std::exchange(block->next_free, nullptr);
      give_back(block);
      block = next;
    }
  }
}

void BlockPool::give_back(Block* block) {
  block->requested = 0;
  block->active = false;
  if (Block* after = block->after; after != nullptr && !after->active) {
    erase_free(after);
    block->bytes += after->bytes;
    block->after = after->after;
    if (block->after != nullptr) block->after->before = block;
    recycle(after);
  }
  if (Block* before = block->before; before != nullptr && !before->active) {
    erase_free(before);
    before->bytes += block->bytes;
    before->after = block->after;
    if (before->after != nullptr) before->after->before = before;
    recycle(block);
    block = before;
  }
  insert_free(block);
}

std::unique_ptr<Segment> BlockPool::take_out(Segment& segment) {
  const auto found =
      std::find_if(segments_.begin(), segments_.end(),
                   [&](const auto& each) { return each.get() == &segment; });
  std::unique_ptr<Segment> taken = std::move(*found);
  *found = std::move(segments_.back());
  segments_.pop_back();
  erase_free(segment.first);
  recycle(segment.first);
  segment.first = nullptr;
  return taken;
}

std::vector<std::unique_ptr<Segment>> BlockPool::take_free_segments() {
  std::vector<std::unique_ptr<Segment>> taken;
  std::vector<std::unique_ptr<Segment>> kept;
  for (auto& segment : segments_) {
    Block* first = segment->first;
    if (!segment->is_free()) {
      kept.push_back(std::move(segment));
      continue;
    }
    erase_free(first);
    recycle(first);
    segment->first = nullptr;
    taken.push_back(std::move(segment));
  }
  segments_ = std::move(kept);
  return taken;
}

}  // namespace xpurt

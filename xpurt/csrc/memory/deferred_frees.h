// Memory that was freed while submitted work may still use it.
#pragma once

#include <cstddef>
#include <map>

#include "stream/uses.h"

namespace xpurt {

// By address, so that memory may be split and merged until it is used again. Not
// thread-safe: its owner locks.
class DeferredFrees {
 public:
  // Adds freed memory. The work of `uses` may still access it. No part of it may be in
  // here already.
  void add(const void* memory, size_t bytes, const MemoryUses& uses);

  // The uses that work on the memory has to wait for.
  Uses uses_of(const void* memory, size_t bytes);

  // The same for memory that is handed out again. It leaves this table: its new owner
  // keeps the uses.
  Uses take_over(const void* memory, size_t bytes);

  void drop_finished();

  size_t size() const { return by_begin_.size(); }

 private:
  struct DeferredFree {
    const char* end;
    MemoryUses uses;
  };
  template <typename Visit>
  void visit_overlapping(const char* begin, const char* end, const Visit& visit);

  std::map<const char*, DeferredFree> by_begin_;  // they do not overlap
};

}  // namespace xpurt

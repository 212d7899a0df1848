// Submitted work that may still use a block of memory.
#pragma once

#include <c10/util/SmallVector.h>

#include <cstdint>
#include <sycl/sycl.hpp>

namespace xpurt {

class Stream;

// Identifies a submission: its number in its lane, which is one queue of a stream.
struct Ticket {
  size_t lane = 0;
  uint64_t number = 0;
};

struct Use {
  Stream* stream;
  Ticket ticket;
  sycl::event done;
};

// The last use in each lane. It stands for the earlier uses in that lane.
class Uses {
 public:
  void add(const Use& use);
  void add(const Uses& others);
  void drop_finished();
  void clear() { uses_.clear(); }

  bool empty() const { return uses_.empty(); }
  const Use* begin() const { return uses_.begin(); }
  const Use* end() const { return uses_.end(); }

 private:
  c10::SmallVector<Use, 2> uses_;
};

// The uses that the next use of a block of memory waits for. A read waits for writes. A
// write waits for reads, too, and then stands for all earlier uses.
struct MemoryUses {
  Uses written;
  Uses read;

  Uses all() const {
    Uses both = written;
    both.add(read);
    return both;
  }
  void record_read(const Use& use) { read.add(use); }
  void record_write(const Use& use) {
    written.clear();
    read.clear();
    written.add(use);
  }
  void drop_finished() {
    written.drop_finished();
    read.drop_finished();
  }
  bool empty() const { return written.empty() && read.empty(); }
};

}  // namespace xpurt

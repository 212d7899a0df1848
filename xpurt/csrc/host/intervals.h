// Sets of bytes, as ranges.
#pragma once

#include <c10/util/SmallVector.h>

#include <cstddef>

#include "host/api.h"

namespace xpurt {

struct Interval {
  size_t begin = 0;
  size_t end = 0;

  size_t size() const { return end - begin; }
};

// Sorted ranges, with gaps between them.
class XPURT_API Intervals {
 public:
  using List = c10::SmallVector<Interval, 1>;

  void add(Interval range);
  void remove(Interval range);
  void clear() { ranges_.clear(); }

  bool empty() const { return ranges_.empty(); }
  bool covers(Interval range) const;
  size_t bytes() const;
  List inside(Interval range) const;   // the parts of `range` in the set
  List missing(Interval range) const;  // the parts of `range` outside of the set

 private:
  List ranges_;
};

}  // namespace xpurt

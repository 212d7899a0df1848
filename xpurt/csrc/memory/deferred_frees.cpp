#include "memory/deferred_frees.h"

#include <iterator>
#include <utility>

namespace xpurt {
namespace {

// Above this number, entries whose work is finished are dropped.
constexpr size_t kManyDeferred = 256;

}  // namespace

template <typename Visit>
void DeferredFrees::visit_overlapping(const char* begin, const char* end,
                                      const Visit& visit) {
  auto found = by_begin_.lower_bound(begin);
  if (found != by_begin_.begin() && std::prev(found)->second.end > begin) --found;
  while (found != by_begin_.end() && found->first < end) visit(found++);
}

void DeferredFrees::add(const void* memory, size_t bytes, const MemoryUses& uses) {
  const auto* begin = static_cast<const char*>(memory);
  by_begin_.insert_or_assign(begin, DeferredFree{begin + bytes, uses});
  if (by_begin_.size() > kManyDeferred) drop_finished();
}

Uses DeferredFrees::uses_of(const void* memory, size_t bytes) {
  Uses all;
  const auto* begin = static_cast<const char*>(memory);
  visit_overlapping(begin, begin + bytes,
                    [&](auto found) { all.add(found->second.uses.all()); });
  return all;
}

Uses DeferredFrees::take_over(const void* memory, size_t bytes) {
  Uses all;
  const auto* begin = static_cast<const char*>(memory);
  const char* const end = begin + bytes;
  visit_overlapping(begin, end, [&](auto found) {
    DeferredFree taken = std::move(found->second);
    const char* const from = found->first;
    by_begin_.erase(found);
    all.add(taken.uses.all());
    // The parts outside of the memory stay.
    if (from < begin) by_begin_.emplace(from, DeferredFree{begin, taken.uses});
    if (end < taken.end) by_begin_.emplace(end, DeferredFree{taken.end, taken.uses});
  });
  all.drop_finished();
  return all;
}

void DeferredFrees::drop_finished() {
  for (auto each = by_begin_.begin(); each != by_begin_.end();) {
    each->second.uses.drop_finished();
    each = each->second.uses.empty() ? by_begin_.erase(each) : std::next(each);
  }
}

}  // namespace xpurt

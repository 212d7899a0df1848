// Private pools of OrdinalMemory: their users, and the allocations that go there.
#include <c10/util/Exception.h>

#include <algorithm>

#include "memory/ordinal_memory.h"

namespace xpurt {

void OrdinalMemory::create_pool(c10::MempoolId_t id, const MemorySource* source,
                                bool use_on_oom) {
  std::lock_guard<Mutex> lock(mutex_);
  PrivatePool& pool = private_pools_[id];
  ++pool.users;
  pool.source = source;
  pool.use_on_oom = use_on_oom;
}

void OrdinalMemory::begin_allocate_to_pool(c10::MempoolId_t id,
                                           std::function<bool(c10::Stream)> takes) {
  TORCH_CHECK_VALUE(id != kDefaultPool,
                    "(0, 0) is the pool of everybody, and cannot be a private one");
  std::lock_guard<Mutex> lock(mutex_);
  for (const Route& route : routes_) {
    TORCH_CHECK(route.id != id, "allocations go to the memory pool (", id.first, ", ",
                id.second, ") already");
  }
  ++private_pools_[id].users;
  routes_.push_back({id, std::move(takes)});
}

void OrdinalMemory::end_allocate_to_pool(c10::MempoolId_t id) {
  std::lock_guard<Mutex> lock(mutex_);
  const auto found = std::find_if(routes_.begin(), routes_.end(),
                                  [&](const Route& route) { return route.id == id; });
  TORCH_CHECK(found != routes_.end(), "no allocations go to the memory pool (",
              id.first, ", ", id.second, ")");
  routes_.erase(found);
}

void OrdinalMemory::release_pool(c10::MempoolId_t id) {
  std::lock_guard<Mutex> lock(mutex_);
  const auto found = private_pools_.find(id);
  TORCH_CHECK(found != private_pools_.end(), "there is no memory pool (", id.first,
              ", ", id.second, ")");
  if (--found->second.users > 0) return;
  private_pools_.erase(found);
  forget_released_pools();
}

// Removes pools that are released and hold no segment. A released pool with segments is
// removed later, when they have gone: each graph has a pool, and a program may make any
// number of graphs.
void OrdinalMemory::forget_released_pools() {
  last_pools_ = nullptr;
  std::erase_if(pools_, [this](const auto& pools) {
    return pools->id != kDefaultPool && is_released(pools->id) &&
           pools->small.segments().empty() && pools->large.segments().empty();
  });
}

int OrdinalMemory::pool_users(c10::MempoolId_t id) {
  std::lock_guard<Mutex> lock(mutex_);
  const auto found = private_pools_.find(id);
  return found == private_pools_.end() ? 0 : found->second.users;
}

c10::MempoolId_t OrdinalMemory::pool_id_for(const Stream& stream) const {
  for (const Route& route : routes_) {
    if (route.takes(stream.id())) return route.id;
  }
  return kDefaultPool;
}

// The last resort of a request that does not fit: a free block of a private pool with
// use_on_oom. The pool is of the same stream, so that the block's old work ends before
// the new work starts.
Block* OrdinalMemory::take_from_reserve(const Request& request) {
  for (const auto& pools : pools_) {
    const auto found = private_pools_.find(pools->id);
    if (found == private_pools_.end() || !found->second.use_on_oom ||
        &pools->stream != &request.stream) {
      continue;
    }
    if (Block* block = take(pools->of(request.rounded), request.rounded)) return block;
  }
  return nullptr;
}

bool OrdinalMemory::is_private(const Segment& segment) {
  std::lock_guard<Mutex> lock(mutex_);
  return pools_of(*segment.pool).id != kDefaultPool;
}

bool OrdinalMemory::is_released(c10::MempoolId_t id) const {
  return private_pools_.count(id) == 0;
}

}  // namespace xpurt

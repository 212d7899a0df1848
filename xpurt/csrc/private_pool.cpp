// Private pools of OrdinalMemory: who uses them, and which streams allocate there.
#include <c10/util/Exception.h>

#include <algorithm>

#include "ordinal_memory.h"

namespace xpurt {

void OrdinalMemory::begin_allocate_to_pool(c10::MempoolId_t id,
                                           std::function<bool(c10::Stream)> takes) {
  TORCH_CHECK_VALUE(id != (c10::MempoolId_t{0, 0}),
                    "(0, 0) is the pool of everybody, and cannot be a private one");
  std::lock_guard<std::mutex> lock(mutex_);
  for (const Route& route : routes_) {
    TORCH_CHECK(route.id != id, "allocations go to the memory pool (", id.first, ", ",
                id.second, ") already");
  }
  ++pool_users_[id];
  routes_.push_back({id, std::move(takes)});
}

void OrdinalMemory::end_allocate_to_pool(c10::MempoolId_t id) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = std::find_if(routes_.begin(), routes_.end(),
                                  [&](const Route& route) { return route.id == id; });
  TORCH_CHECK(found != routes_.end(), "no allocations go to the memory pool (",
              id.first, ", ", id.second, ")");
  routes_.erase(found);
}

void OrdinalMemory::release_pool(c10::MempoolId_t id) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = pool_users_.find(id);
  TORCH_CHECK(found != pool_users_.end(), "there is no memory pool (", id.first, ", ",
              id.second, ")");
  if (--found->second == 0) pool_users_.erase(found);
}

bool OrdinalMemory::is_released(c10::MempoolId_t id) const {
  return pool_users_.count(id) == 0;
}

}  // namespace xpurt

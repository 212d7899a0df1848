#include "replica_pool.h"

#include <algorithm>

namespace xpurt {
namespace {

constexpr size_t kSmallRounding = 512;
constexpr size_t kLargeRounding = size_t(2) << 20;  // from one MiB on
constexpr size_t kLarge = size_t(1) << 20;

size_t rounded(size_t bytes) {
  const size_t unit = bytes < kLarge ? kSmallRounding : kLargeRounding;
  return std::max<size_t>(1, (bytes + unit - 1) / unit) * unit;
}

void* from_driver(size_t bytes, const PhysicalDevice& device) {
  try {
    return sycl::malloc_device(bytes, device.device, device.context);
  } catch (const sycl::exception&) {
    return nullptr;  // some drivers throw instead
  }
}

// Keeps the GIL: the caller holds a lock that a thread with the GIL may want.
void wait_for(const Uses& uses) {
  for (const Use& use : uses) {
    try {
      if (!use.stream->has_seen(use.ticket)) sycl::event(use.done).wait();
    } catch (const sycl::exception&) {  // kept by its stream
    }
  }
}

}  // namespace

ReplicaMemory ReplicaPool::take(size_t bytes) {
  const size_t wanted = rounded(bytes);
  ReplicaMemory result;
  auto [first, last] = cached_.equal_range(wanted);
  if (first != last) {
    result = std::move(first->second);
    result.uses.drop_finished();
    cached_.erase(first);
    bytes_cached_ -= wanted;
  } else {
    result.bytes = wanted;
    result.pointer = from_driver(wanted, device_);
    if (result.pointer == nullptr) return result;
  }
  bytes_taken_ += result.bytes;
  return result;
}

void ReplicaPool::give_back(ReplicaMemory memory) {
  bytes_taken_ -= memory.bytes;
  bytes_cached_ += memory.bytes;
  const size_t bytes = memory.bytes;
  cached_.emplace(bytes, std::move(memory));
}

void ReplicaPool::trim() {
  for (auto& [bytes, memory] : cached_) {
    wait_for(memory.uses.all());
    sycl::free(memory.pointer, device_.context);
  }
  cached_.clear();
  bytes_cached_ = 0;
}

}  // namespace xpurt

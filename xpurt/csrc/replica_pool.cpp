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

bool used_only_by(const ReplicaMemory& memory, const Stream& stream) {
  return std::all_of(memory.used_by.begin(), memory.used_by.end(),
                     [&](const Stream* each) { return each == &stream; });
}

void* from_driver(size_t bytes, const PhysicalDevice& device) {
  try {
    return sycl::malloc_device(bytes, device.device, device.context);
  } catch (const sycl::exception&) {
    return nullptr;  // some drivers throw instead
  }
}

// Keeps the GIL: the caller holds a lock that a thread with the GIL may want.
void wait_for_users(ReplicaMemory& memory) {
  for (Stream* stream : memory.used_by) stream->record().wait();
  memory.used_by.clear();
}

}  // namespace

void ReplicaMemory::use(Stream& stream) {
  if (std::find(used_by.begin(), used_by.end(), &stream) == used_by.end()) {
    used_by.push_back(&stream);
  }
}

ReplicaMemory ReplicaPool::take(size_t bytes, Stream& stream) {
  const size_t wanted = rounded(bytes);
  ReplicaMemory result;
  auto [first, last] = cached_.equal_range(wanted);
  // What only this stream used is ordered after its own earlier work.
  auto found = std::find_if(first, last, [&](const auto& entry) {
    return used_only_by(entry.second, stream);
  });
  if (found == last && first != last) {
    found = first;
    wait_for_users(found->second);
  }
  if (found != last) {
    result = std::move(found->second);
    cached_.erase(found);
  } else {
    result.bytes = wanted;
    result.pointer = from_driver(wanted, device_);
    if (result.pointer == nullptr) return result;
  }
  result.use(stream);
  bytes_taken_ += result.bytes;
  return result;
}

void ReplicaPool::give_back(ReplicaMemory memory) {
  bytes_taken_ -= memory.bytes;
  const size_t bytes = memory.bytes;
  cached_.emplace(bytes, std::move(memory));
}

void ReplicaPool::trim() {
  for (auto& [bytes, memory] : cached_) {
    wait_for_users(memory);
    sycl::free(memory.pointer, device_.context);
  }
  cached_.clear();
}

}  // namespace xpurt

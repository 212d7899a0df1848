#include "quantized/packed_weight.h"

#include <map>
#include <utility>

#include "host/mutex.h"
#include "memory/cpu_allocator.h"

namespace xpurt {
namespace {

using at::Tensor;

struct Packed {
  c10::weak_intrusive_ptr<c10::StorageImpl> storage;
  int64_t offset;
  uint32_t version;
  std::vector<int64_t> parameters;
  Tensor weight;
};

struct Kept {
  Mutex mutex{Rank::packed_weights};
  std::map<std::pair<const c10::StorageImpl*, PackedForm>, Packed> packed;
};

Kept& kept() {
  static Kept* const leaked = new Kept;
  return *leaked;
}

thread_local const Tensor* owner_of_weight = nullptr;

// Removes the entries of freed storages, and returns them to be freed without the lock.
std::vector<Tensor> take_expired() {
  std::vector<Tensor> taken;
  std::erase_if(kept().packed, [&](auto& entry) {
    if (!entry.second.storage.expired()) return false;
    taken.push_back(std::move(entry.second.weight));
    return true;
  });
  return taken;
}

const Tensor& owner_of(const Tensor& weight) {
  return owner_of_weight != nullptr ? *owner_of_weight : weight;
}

}  // namespace

WeightOwner::WeightOwner(const Tensor& owner)
    : before_(std::exchange(owner_of_weight, &owner)) {}

WeightOwner::~WeightOwner() {
  owner_of_weight = before_;
}

bool keeps_packed(const Tensor& weight) {
  return !owner_of(weight).is_inference();
}

Tensor packed_weight(const Tensor& weight, PackedForm form,
                     const std::vector<int64_t>& parameters,
                     const std::function<Tensor()>& pack) {
  // Packed weights outlive the call, and are read by the host alone.
  const ResultsOnDevice in_host_memory(false);
  if (!keeps_packed(weight)) return pack();
  const Tensor& owner = owner_of(weight);
  const c10::Storage& storage = owner.storage();
  const std::pair<const c10::StorageImpl*, PackedForm> key{
      storage.unsafeGetStorageImpl(), form};
  const auto offset = owner.storage_offset();
  const auto version = static_cast<uint32_t>(owner._version());
  {
    std::lock_guard<Mutex> lock(kept().mutex);
    const auto found = kept().packed.find(key);
    if (found != kept().packed.end()) {
      const Packed& entry = found->second;
      if (!entry.storage.expired() && entry.offset == offset &&
          entry.version == version && entry.parameters == parameters) {
        return entry.weight;
      }
    }
  }
  Packed entry{storage.getWeakStorageImpl(), offset, version, parameters, pack()};
  const Tensor packed = entry.weight;
  std::vector<Tensor> expired;  // freed after the lock
  std::lock_guard<Mutex> lock(kept().mutex);
  expired = take_expired();
  const auto [found, is_new] = kept().packed.try_emplace(key, std::move(entry));
  if (!is_new) std::swap(found->second, entry);
  return packed;
}

}  // namespace xpurt

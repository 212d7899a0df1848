#include "layouts/watched_weights.h"

#include <unordered_map>

#include "layouts/weak_tensor.h"

namespace xpurt {
namespace {

using at::Tensor;

struct Known {
  WeakTensor tensor;
  std::weak_ptr<WatchedWeight> weight;
};

std::unordered_map<const c10::TensorImpl*, Known>& known() {
  thread_local std::unordered_map<const c10::TensorImpl*, Known> found;
  return found;
}

}  // namespace

WatchedWeight::WatchedWeight(const Tensor& weight, bool outlasts_block)
    : version_(weight._version()),
      storage_(weight.storage().getWeakStorageImpl()),
      address_(weight.storage().unsafeGetStorageImpl()),
      offset_(weight.storage_offset()),
      sizes_(weight.sizes()),
      strides_(weight.strides()),
      type_(weight.scalar_type()),
      sample_(outlasts_block ? std::optional<WeightSample>(std::in_place, weight)
                             : std::nullopt),
      watch_(watch_writes(weight)) {}

bool WatchedWeight::is_in_place(const Tensor& weight) const {
  return weight._version() == version_ &&
         weight.storage().unsafeGetStorageImpl() == address_ &&
         weight.storage_offset() == offset_ && weight.sizes() == sizes_ &&
         weight.strides() == strides_ && weight.scalar_type() == type_;
}

bool WatchedWeight::is_unwritten(const Tensor& weight) {
  if (!is_in_place(weight)) return false;
  if (const auto watch = watch_.load()) {
    if (watch->state() == WriteWatch::State::written) return false;
    if (watch->state() == WriteWatch::State::on) return true;
  }
  if (!sample_ || !sample_->is_of(weight)) return false;
  watch_.store(watch_writes(weight));
  return true;
}

std::shared_ptr<WatchedWeight> watched_weight(const Tensor& weight) {
  const auto at = known().find(weight.unsafeGetTensorImpl());
  if (at != known().end()) {
    auto found = at->second.weight.lock();
    if (found && found->is_unwritten(weight)) return found;
  }
  auto made = std::make_shared<WatchedWeight>(weight, /*outlasts_block=*/true);
  known().insert_or_assign(weight.unsafeGetTensorImpl(),
                           Known{WeakTensor(weight.getIntrusivePtr()), made});
  return made;
}

void forget_lost_weights() {
  std::erase_if(known(), [](const auto& each) { return each.second.weight.expired(); });
}

}  // namespace xpurt

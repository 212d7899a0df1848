// Weights whose writes are noticed, those that no version counts, too.
#pragma once

#include <ATen/core/Tensor.h>

#include <atomic>
#include <memory>
#include <optional>

#include "layouts/weight_sample.h"
#include "layouts/write_watch.h"

namespace xpurt {

// A weight as it was when something was made of it: its place in a storage, its
// version, and that nobody has written to it without a count since then. In one block
// writes are watched. A later block compares, at the first use, a sample of the
// elements.
class WatchedWeight {
 public:
  // outlasts_block: whether it may be found unwritten in later blocks, too.
  WatchedWeight(const at::Tensor& weight, bool outlasts_block);

  // False at times although nobody has written.
  bool is_unwritten(const at::Tensor& weight);

 private:
  const uint32_t version_;
  // No other storage has its address meanwhile.
  const c10::weak_intrusive_ptr<c10::StorageImpl> storage_;
  const c10::StorageImpl* const address_;
  const int64_t offset_;
  const c10::DimVector sizes_;
  const c10::DimVector strides_;
  const at::ScalarType type_;
  const std::optional<WeightSample> sample_;
  std::atomic<std::shared_ptr<const WriteWatch>> watch_;

  bool is_in_place(const at::Tensor& weight) const;
};

// The weight as it is now, for later blocks, too. One for all that this thread makes of
// this version of it, which holds it.
std::shared_ptr<WatchedWeight> watched_weight(const at::Tensor& weight);

// Forgets those that nobody holds.
void forget_lost_weights();

}  // namespace xpurt

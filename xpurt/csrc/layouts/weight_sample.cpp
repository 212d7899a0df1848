#include "layouts/weight_sample.h"

#include <ATen/Functions.h>
#include <c10/core/GradMode.h>

#include <random>

#include "layouts/block_operands.h"

namespace xpurt {
namespace {

using at::Tensor;

constexpr int64_t kMost = 1024;  // elements; a weight of no more is compared as a whole

int64_t offset_of(int64_t place, const Tensor& weight) {
  int64_t offset = 0;
  for (int64_t i = weight.dim() - 1; i >= 0; --i) {
    offset += place % weight.size(i) * weight.stride(i);
    place /= weight.size(i);
  }
  return offset;
}

Tensor offsets_of(const Tensor& weight) {
  std::vector<int64_t> offsets = sampled_places(weight.numel());
  for (int64_t& each : offsets) each = offset_of(each, weight);
  return at::tensor(offsets).to(weight.device());
}

template <typename Bits>
bool has_elements(const Tensor& weight, const Tensor& offsets, const Tensor& seen) {
  const auto* found = static_cast<const Bits*>(weight.const_data_ptr());
  const auto* expected = static_cast<const Bits*>(seen.const_data_ptr());
  const auto* at = offsets.const_data_ptr<int64_t>();
  for (int64_t i = 0; i < offsets.numel(); ++i) {
    if (found[at[i]] != expected[i]) return false;
  }
  return true;
}

Tensor elements(const Tensor& weight, const Tensor& offsets) {
  const at::NoGradGuard without_gradients;
  const Tensor memory =
      weight.detach().as_strided({reach(weight) + 1}, {1}, weight.storage_offset());
  return memory.index_select(0, offsets);
}

}  // namespace

std::vector<int64_t> sampled_places(int64_t size) {
  std::vector<int64_t> places(std::min(size, kMost));
  std::mt19937_64 random(size);  // the same in each process
  for (int64_t part = 0; part < std::ssize(places); ++part) {
    const int64_t begin = size * part / std::ssize(places);
    const int64_t end = size * (part + 1) / std::ssize(places);
    places[part] = begin + static_cast<int64_t>(random() % (end - begin));
  }
  return places;
}

WeightSample::WeightSample(const Tensor& weight)
    : offsets_(offsets_of(weight)), seen_(elements(weight, offsets_)) {}

bool WeightSample::is_of(const Tensor& weight) const {
  if (weight.is_cpu() && weight.element_size() == 4) {
    return has_elements<uint32_t>(weight, offsets_, seen_);
  }
  if (weight.is_cpu() && weight.element_size() == 2) {
    return has_elements<uint16_t>(weight, offsets_, seen_);
  }
  return at::equal(seen_, elements(weight, offsets_));
}

}  // namespace xpurt

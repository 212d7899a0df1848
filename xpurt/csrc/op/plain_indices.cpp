#include "op/plain_indices.h"

#include <ATen/ExpandUtils.h>
#include <ATen/native/IndexingUtils.h>

#include <algorithm>

namespace xpurt {
namespace {

using at::Tensor;

// The sizes of self[indices]. If the indices are not in adjacent dimensions, their
// dimensions come first in the result.
std::vector<int64_t> indexed_sizes(const Tensor& self,
                                   const std::vector<Tensor>& indices,
                                   const std::vector<int64_t>& shape) {
  std::vector<int64_t> sizes;
  size_t at = 0;
  bool placed = false;
  for (int64_t d = 0; d < self.dim(); ++d) {
    const bool indexed =
        static_cast<size_t>(d) < indices.size() && indices[d].defined();
    if (!indexed) {
      sizes.push_back(self.size(d));
    } else if (!placed) {
      placed = true;
      at = at::native::hasContiguousSubspace(indices) ? sizes.size() : 0;
    }
  }
  sizes.insert(sizes.begin() + static_cast<int64_t>(at), shape.begin(), shape.end());
  return sizes;
}

}  // namespace

void make_indices_plain(const c10::FunctionSchema& schema, size_t position,
                        torch::jit::Stack* stack) {
  const size_t begin = stack->size() - schema.arguments().size();
  const Tensor self = (*stack)[begin].toTensor();
  c10::IValue& argument = (*stack)[begin + position];
  std::vector<Tensor> indices = at::native::expandTensors(
      self, at::native::toListOfOptionalTensors(argument.toListRef()));
  TORCH_CHECK_INDEX(static_cast<int64_t>(indices.size()) <= self.dim(),
                    "too many indices for tensor of dimension ", self.dim(), " (got ",
                    indices.size(), ")");
  const auto is_given = [](const Tensor& each) { return each.defined(); };
  TORCH_CHECK_INDEX(std::ranges::any_of(indices, is_given),
                    "at least one index must be provided");
  std::vector<int64_t> shape;
  try {
    for (const Tensor& each : indices) {
      if (each.defined()) shape = at::infer_size(shape, each.sizes());
    }
  } catch (const c10::Error&) {
    TORCH_CHECK_INDEX(false, "shape mismatch: indices do not broadcast together");
  }
  c10::List<std::optional<Tensor>> list;
  for (Tensor& each : indices) {
    if (each.defined()) each = each.expand(shape);
    list.push_back(each.defined() ? std::make_optional(each) : std::nullopt);
  }
  argument = std::move(list);
  const auto values = schema.argumentIndexWithName("values");
  if (!values.has_value()) return;
  const auto sizes = indexed_sizes(self, indices, shape);
  c10::IValue& given = (*stack)[begin + *values];
  TORCH_CHECK(at::is_expandable_to(given.toTensor().sizes(), sizes),
              "shape mismatch: value tensor of shape ", given.toTensor().sizes(),
              " cannot be broadcast to indexing result of shape ", sizes);
  given = given.toTensor().expand(sizes);
}

}  // namespace xpurt

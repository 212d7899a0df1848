#include "dispatch/unboxed/direct_where.h"

namespace xpurt {

bool DirectWhere::fits(const at::Tensor& condition, const at::Tensor& self,
                       const at::Tensor& other) {
  return is_direct_operand(condition) && is_direct_operand(self) &&
         is_direct_operand(other) && condition.scalar_type() == c10::ScalarType::Bool &&
         self.dtype() == other.dtype() && condition.sizes() == self.sizes() &&
         self.sizes() == other.sizes() &&
         by_item_size(self.dtype().itemsize(), [](auto) {});
}

std::optional<at::Tensor> DirectWhere::run(const at::Tensor& condition,
                                           const at::Tensor& self,
                                           const at::Tensor& other) {
  at::Tensor made = make_direct_result(self, self.sizes());
  const auto* chosen = static_cast<const bool*>(condition.const_data_ptr());
  by_item_size(self.dtype().itemsize(), [&](auto item) {
    using Item = decltype(item);
    const auto* a = static_cast<const Item*>(self.const_data_ptr());
    const auto* b = static_cast<const Item*>(other.const_data_ptr());
    auto* to = static_cast<Item*>(made.mutable_data_ptr());
    const int64_t elements = made.numel();
#pragma omp simd
    for (int64_t i = 0; i < elements; ++i) to[i] = chosen[i] ? a[i] : b[i];
  });
  return made;
}

}  // namespace xpurt

#include "memory/element_span.h"

namespace xpurt {

Interval element_span(const c10::TensorImpl& tensor) {
  const size_t item = tensor.itemsize();
  const auto first = static_cast<size_t>(tensor.storage_offset());
  if (tensor.numel() == 0) return {first * item, first * item};
  size_t last = first;
  for (int64_t d = 0; d < tensor.dim(); ++d) {
    last += (tensor.size(d) - 1) * tensor.stride(d);
  }
  return {first * item, (last + 1) * item};
}

}  // namespace xpurt

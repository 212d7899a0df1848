#include "dispatch/unboxed/direct_cat.h"

#include <c10/util/DimVector.h>

#include <cstring>

namespace xpurt {
namespace {

// Tensors of more dimensions may have another memory format than the contiguous one,
// which the result takes over.
constexpr int64_t kMostDims = 3;

// Whether two tensors have the same sizes, except along `dim`.
bool agree_beside(const c10::TensorImpl& a, const c10::TensorImpl& b, int64_t dim) {
  for (int64_t d = 0; d < a.dim(); ++d) {
    if (d != dim && a.sizes()[d] != b.sizes()[d]) return false;
  }
  return true;
}

}  // namespace

bool DirectCat::fits(const at::ITensorListRef& tensors, int64_t dim) {
  const c10::TensorImpl* first = nullptr;
  int64_t elements = 0;
  for (const at::Tensor& tensor : tensors) {
    if (!is_direct_operand(tensor)) return false;
    const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
    elements += impl.numel();
    if (first == nullptr) {
      first = &impl;
      if (dim < 0) dim += impl.dim();
      if (impl.dim() > kMostDims || dim < 0 || dim >= impl.dim()) return false;
    } else if (impl.dtype() != first->dtype() || impl.dim() != first->dim() ||
               !agree_beside(impl, *first, dim)) {
      return false;
    }
  }
  return first != nullptr &&
         elements * static_cast<int64_t>(first->dtype().itemsize()) <= kDirectBytes;
}

std::optional<at::Tensor> DirectCat::run(const at::ITensorListRef& tensors,
                                         int64_t dim) {
  struct Part {
    const char* from;
    size_t chunk;  // bytes that are adjacent in the result
  };
  c10::SmallVector<Part, 8> parts;
  const at::Tensor& first = tensors.front();
  if (dim < 0) dim += first.dim();
  int64_t inner = static_cast<int64_t>(first.dtype().itemsize());
  for (int64_t d = dim + 1; d < first.dim(); ++d) inner *= first.sizes()[d];
  c10::DimVector sizes(first.sizes());
  sizes[dim] = 0;
  for (const at::Tensor& tensor : tensors) {
    const int64_t length = tensor.sizes()[dim];
    sizes[dim] += length;
    parts.push_back({static_cast<const char*>(tensor.const_data_ptr()),
                     static_cast<size_t>(length * inner)});
  }
  at::Tensor made = make_direct_result(first, sizes);
  char* to = static_cast<char*>(made.mutable_data_ptr());
  int64_t outer = 1;
  for (int64_t d = 0; d < dim; ++d) outer *= sizes[d];
  for (; outer > 0; --outer) {
    for (Part& part : parts) {
      if (part.chunk == 0) continue;  // may have no address
      std::memcpy(to, part.from, part.chunk);
      to += part.chunk;
      part.from += part.chunk;
    }
  }
  return made;
}

}  // namespace xpurt

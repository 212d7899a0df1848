// The properties of a call's operands by which costs are learned and choices are
// cached.
#pragma once

#include <c10/core/ScalarType.h>
#include <c10/core/TensorImpl.h>

#include <algorithm>
#include <cstdint>

#include "op/cost_table.h"

namespace xpurt {

// The properties of one call's operands that the choice depends on.
class CallSignature {
 public:
  void record(const c10::TensorImpl& tensor) {
    const int64_t elements = tensor.numel();
    if (elements > 1) {
      differ_ |= elements != elements_ && elements_ > 1;
      strided_ |= !tensor.is_non_overlapping_and_dense();
      (tensor.is_contiguous() ? contiguous_ : permuted_) = true;
    }
    if (elements > elements_) {
      elements_ = elements;
      type_ = tensor.dtype();
    }
  }

  // Records an op that runs along these dimensions of the tensor, such as a sum. Empty:
  // along all of them.
  void record_dims(const c10::TensorImpl& tensor, c10::IntArrayRef dims) {
    if (dims.empty() || tensor.dim() < 2 || !tensor.is_contiguous()) return;
    const c10::IntArrayRef sizes = tensor.sizes();
    const auto count = static_cast<int64_t>(sizes.size());
    int64_t length = 1;
    bool across = true;
    for (const int64_t given : dims) {
      const int64_t dim = given < 0 ? given + count : given;
      if (dim < 0 || dim >= count) return;  // an error, which the op itself raises
      length *= sizes[dim];
      across &= dim != count - 1;
    }
    run_along(across, length);
  }

  // Records an op that runs along the `dims` innermost dimensions of the tensor, such
  // as a layer normalization.
  void record_line(const c10::TensorImpl& tensor, size_t dims) {
    const c10::IntArrayRef sizes = tensor.sizes();
    if (dims >= sizes.size() || !tensor.is_contiguous()) return;
    int64_t length = 1;
    for (const int64_t size : sizes.slice(sizes.size() - dims)) length *= size;
    run_along(false, length);
  }

  // Records an op that runs along all dimensions except the channels.
  void record_channels(const c10::TensorImpl& tensor) {
    if (tensor.dim() > 1 && tensor.is_contiguous()) run_along(true, 1);
  }

  int64_t elements() const { return elements_; }  // of the largest operand
  c10::ScalarType type() const { return c10::typeMetaToScalarType(type_); }
  OperandLayout layout() const {
    if (strided_ || (contiguous_ && permuted_)) return OperandLayout::strided;
    if (along_ != OperandLayout::alike) return along_;
    return differ_ ? OperandLayout::mixed : OperandLayout::alike;
  }

 private:
  void run_along(bool across, int64_t length) {
    if (across) {
      along_ = OperandLayout::across;
    } else if (length > kLongLine) {
      along_ = OperandLayout::long_lines;
    }
  }

  int64_t elements_ = 0;
  caffe2::TypeMeta type_ = caffe2::TypeMeta::Make<float>();
  bool differ_ = false;
  bool strided_ = false;
  bool contiguous_ = false;                     // some operand is contiguous
  bool permuted_ = false;                       // some operand is not contiguous
  OperandLayout along_ = OperandLayout::alike;  // by the direction the op runs along
};

// Size class k has 2^k to 2^(k+1) elements.
constexpr int kMinSizeLog2 = 10, kMaxSizeLog2 = 40;
constexpr size_t kSizeClasses = kMaxSizeLog2 - kMinSizeLog2 + 1;
constexpr int kSignatureTypes = 11;  // the letters of element_type.h, one for the rest
constexpr size_t kTypeLayouts = kSignatureTypes * kLayouts;

// The index of calls by the number of elements, and by type and layout.
size_t size_class_of(int64_t elements);
size_t type_layout_of(const CallSignature& signature);
// The type's letter of an index by type and layout; '?' for a type without kernels.
char letter_at(size_t type_layout);
// The geometric mean of the elements of the calls in a size class.
double elements_in(size_t size_class);

}  // namespace xpurt

// Direct forms of unboxed ops: results from the bytes of xpu tensors, without any CPU
// tensor.
#pragma once

#include <ATen/core/IListRef.h>
#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <type_traits>

#include "memory/replica/replica.h"
#include "native/structured.h"
#include "stream/stream.h"

namespace xpurt {

// Note [Direct forms]
// ~~~~~~~~~~~~~~~~~~~
// A small op that only moves elements, or whose CPU kernel does not depend on the
// device of its tensors, spends most of its time on CPU tensors that are made for the
// call and relabeled after it. A direct form computes the result from the bytes of the
// xpu tensors, into a new xpu tensor.
//
// A direct form is the native tier in all respects but one. It runs after the same
// inspection and the same choice: never in a capture, on another device, or on memory
// that the host does not read. It waits for the same work, and is counted and recorded
// by the profiler under the same op. What it leaves out are the unusual calls. fits()
// returns whether the properties of the operands are those of the common case: dense
// tensors of xpu that agree. All other calls, errors included, take
// PyTorch's CPU kernel as before. So no form raises an error of its own. An index is
// checked when its bytes can be read: run() returns no result if one is out of range.
//
// A form has
//   static bool fits(arguments...);
//   static std::optional<at::Tensor> run(arguments...);
// with the arguments of the op, and derives from DirectForm. It may not write to its
// operands.
//
// Rejected: PyTorch's CPU kernels on xpu tensors by way of their stubs. Some of these
// kernels call other ops on their operands. On xpu such an op may be queued, and the
// kernel would not wait for it.
struct DirectForm {};

template <typename Form>
constexpr bool is_direct_form = std::is_base_of_v<DirectForm, Form>;

// From this size on PyTorch's kernels use more than one thread.
constexpr int64_t kDirectBytes = 64 * 1024;

// Whether a tensor is an xpu tensor over contiguous bytes, with elements, and is small.
inline bool is_direct_operand(const at::Tensor& tensor) {
  const c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  return impl->is_xpu() && impl->is_contiguous() && impl->numel() > 0 &&
         impl->numel() * static_cast<int64_t>(impl->dtype().itemsize()) <= kDirectBytes;
}

// A new contiguous tensor like `like`, with other sizes.
inline at::Tensor make_direct_result(const at::Tensor& like, c10::IntArrayRef sizes) {
  return make_result(sizes, {}, like.options());
}

// Waits until the host can read the operands.
class DirectReads {
 public:
  template <typename... Args>
  explicit DirectReads(Stream& stream, const Args&... args) {
    (add(args), ...);
    stream.wait_for(pending_);
  }

 private:
  template <typename Arg>
  void add(const Arg&) {}
  void add(const at::Tensor& tensor) {
    bring_home(*tensor.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl(),
               Access::read, &pending_);
  }
  void add(const at::ITensorListRef& tensors) {
    for (const at::Tensor& tensor : tensors) add(tensor);
  }
  void add(const c10::List<std::optional<at::Tensor>>& tensors) {
    for (const std::optional<at::Tensor> tensor : tensors) {
      if (tensor) add(*tensor);
    }
  }

  Uses pending_;
};

// Calls `apply` with a value of a type as large as an element, for code that only moves
// elements. Returns false for other sizes.
template <typename Apply>
bool by_item_size(size_t item_size, Apply&& apply) {
  switch (item_size) {
    case 1:
      apply(uint8_t{});
      return true;
    case 2:
      apply(uint16_t{});
      return true;
    case 4:
      apply(uint32_t{});
      return true;
    case 8:
      apply(uint64_t{});
      return true;
    default:
      return false;
  }
}

}  // namespace xpurt

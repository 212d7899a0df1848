#include "dispatch/unboxed/direct_index.h"

#include <c10/util/DimVector.h>

#include <cstring>

namespace xpurt {
namespace {

// Types of indices besides this one are rare, and take PyTorch's kernel.
bool is_direct_index(const at::Tensor& index) {
  return is_direct_operand(index) && index.scalar_type() == c10::ScalarType::Long;
}

bool has_item_size(const at::Tensor& tensor) {
  return by_item_size(tensor.dtype().itemsize(), [](auto) {});
}

bool are_in_range(const int64_t* indices, int64_t count, int64_t least, int64_t end) {
  bool good = true;
  for (int64_t i = 0; i < count; ++i) good &= indices[i] >= least && indices[i] < end;
  return good;
}

// Copies lines of `bytes` bytes from the positions `indices`; a negative one counts
// from the end.
void take_lines(const char* from, int64_t lines, const int64_t* indices, int64_t count,
                size_t bytes, char* to) {
  if (bytes == 0) return;  // the memory may have no address
  for (int64_t i = 0; i < count; ++i) {
    const int64_t line = indices[i] < 0 ? indices[i] + lines : indices[i];
    std::memcpy(to, from + line * bytes, bytes);
    to += bytes;
  }
}

// The same for lines of one element.
template <typename Item>
void take_items(const Item* from, int64_t items, const int64_t* indices, int64_t count,
                Item* to) {
  for (int64_t i = 0; i < count; ++i) {
    to[i] = from[indices[i] < 0 ? indices[i] + items : indices[i]];
  }
}

void take(const void* from, int64_t lines, const int64_t* indices, int64_t count,
          int64_t line_items, size_t item_size, void* to) {
  const auto one_by_one = [&](auto item) {
    using Item = decltype(item);
    take_items(static_cast<const Item*>(from), lines, indices, count,
               static_cast<Item*>(to));
  };
  if (line_items == 1 && by_item_size(item_size, one_by_one)) return;
  take_lines(static_cast<const char*>(from), lines, indices, count,
             line_items * item_size, static_cast<char*>(to));
}

int64_t product(c10::IntArrayRef sizes) {
  int64_t elements = 1;
  for (const int64_t size : sizes) elements *= size;
  return elements;
}

// Gathers along the middle dimension of [outer, length, inner] tensors.
template <typename Item>
void gather_lines(const Item* from, int64_t from_length, const int64_t* indices,
                  int64_t length, int64_t inner, Item* to, const Item* end) {
  if (inner == 1) {
    for (; to != end; from += from_length) {
      for (int64_t j = 0; j < length; ++j) *to++ = from[*indices++];
    }
    return;
  }
  for (; to != end; from += from_length * inner) {
    for (int64_t j = 0; j < length; ++j) {
      for (int64_t i = 0; i < inner; ++i) to[i] = from[indices[i] * inner + i];
      to += inner;
      indices += inner;
    }
  }
}

// The same from a part of the tensor: the indices are fewer along other dimensions,
// too.
template <typename Item>
void gather_parts(const Item* from, c10::IntArrayRef strides, int64_t dim,
                  const int64_t* indices, c10::IntArrayRef sizes, Item* to) {
  const auto dims = static_cast<int64_t>(sizes.size());
  const int64_t line = sizes[dims - 1];
  const int64_t step = dim == dims - 1 ? 0 : 1;  // along a line, beside the index
  const int64_t stride = strides[dim];
  c10::DimVector at(dims, 0);  // the line's position in the index
  for (int64_t left = product(sizes); left > 0; left -= line) {
    const Item* base = from;
    for (int64_t d = 0; d < dims - 1; ++d) {
      if (d != dim) base += at[d] * strides[d];
    }
    for (int64_t i = 0; i < line; ++i) to[i] = base[i * step + indices[i] * stride];
    to += line;
    indices += line;
    for (int64_t d = dims - 2; d >= 0 && ++at[d] == sizes[d]; --d) at[d] = 0;
  }
}

bool same_sizes_beside(const at::Tensor& a, const at::Tensor& b, int64_t dim) {
  for (int64_t d = 0; d < a.dim(); ++d) {
    if (d != dim && a.sizes()[d] != b.sizes()[d]) return false;
  }
  return true;
}

bool is_small(int64_t elements, const at::Tensor& like) {
  return elements * static_cast<int64_t>(like.dtype().itemsize()) <= kDirectBytes;
}

}  // namespace

bool DirectGather::fits(const at::Tensor& self, int64_t dim, const at::Tensor& index,
                        bool) {
  if (!is_direct_operand(self) || !is_direct_index(index) || !has_item_size(self)) {
    return false;
  }
  const int64_t dims = self.dim();
  if (dim < 0) dim += dims;
  if (dims == 0 || index.dim() != dims || dim < 0 || dim >= dims) return false;
  for (int64_t d = 0; d < dims; ++d) {
    if (d != dim && index.sizes()[d] > self.sizes()[d]) return false;
  }
  return is_small(index.numel(), self);
}

std::optional<at::Tensor> DirectGather::run(const at::Tensor& self, int64_t dim,
                                            const at::Tensor& index, bool) {
  const int64_t dims = self.dim();
  if (dim < 0) dim += dims;
  const auto* indices = static_cast<const int64_t*>(index.const_data_ptr());
  if (!are_in_range(indices, index.numel(), 0, self.sizes()[dim])) return std::nullopt;
  at::Tensor made = make_direct_result(self, index.sizes());
  const int64_t inner = product(index.sizes().slice(dim + 1));
  by_item_size(self.dtype().itemsize(), [&](auto item) {
    using Item = decltype(item);
    const auto* from = static_cast<const Item*>(self.const_data_ptr());
    auto* to = static_cast<Item*>(made.mutable_data_ptr());
    if (same_sizes_beside(self, index, dim)) {
      gather_lines(from, self.sizes()[dim], indices, index.sizes()[dim], inner, to,
                   to + index.numel());
    } else {
      gather_parts(from, self.strides(), dim, indices, index.sizes(), to);
    }
  });
  return made;
}

bool DirectIndexSelect::fits(const at::Tensor& self, int64_t dim,
                             const at::Tensor& index) {
  if (!is_direct_operand(self) || !is_direct_index(index)) return false;
  const int64_t dims = self.dim();
  if (dim < 0) dim += dims;
  return index.dim() <= 1 && dim >= 0 && dim < dims &&
         is_small(self.numel() / self.sizes()[dim] * index.numel(), self);
}

std::optional<at::Tensor> DirectIndexSelect::run(const at::Tensor& self, int64_t dim,
                                                 const at::Tensor& index) {
  if (dim < 0) dim += self.dim();
  const auto* indices = static_cast<const int64_t*>(index.const_data_ptr());
  const int64_t lines = self.sizes()[dim];
  const int64_t count = index.numel();
  if (!are_in_range(indices, count, 0, lines)) return std::nullopt;
  c10::DimVector sizes(self.sizes());
  sizes[dim] = count;
  at::Tensor made = make_direct_result(self, sizes);
  const int64_t line_items = product(self.sizes().slice(dim + 1));
  const size_t item_size = self.dtype().itemsize();
  const auto* from = static_cast<const char*>(self.const_data_ptr());
  auto* to = static_cast<char*>(made.mutable_data_ptr());
  for (int64_t outer = product(self.sizes().slice(0, dim)); outer > 0; --outer) {
    take(from, lines, indices, count, line_items, item_size, to);
    from += lines * line_items * item_size;
    to += count * line_items * item_size;
  }
  return made;
}

bool DirectIndex::fits(const at::Tensor& self, const Indices& indices) {
  if (indices.size() != 1 || !is_direct_operand(self) || self.dim() == 0) return false;
  const std::optional<at::Tensor> index = indices.get(0);
  return index.has_value() && index->defined() && is_direct_index(*index) &&
         index->dim() > 0 &&
         is_small(self.numel() / self.sizes()[0] * index->numel(), self);
}

std::optional<at::Tensor> DirectIndex::run(const at::Tensor& self,
                                           const Indices& indices) {
  const std::optional<at::Tensor> held = indices.get(0);
  const at::Tensor& index = *held;
  const auto* positions = static_cast<const int64_t*>(index.const_data_ptr());
  const int64_t lines = self.sizes()[0];
  if (!are_in_range(positions, index.numel(), -lines, lines)) return std::nullopt;
  c10::DimVector sizes(index.sizes());
  sizes.append(self.sizes().begin() + 1, self.sizes().end());
  at::Tensor made = make_direct_result(self, sizes);
  take(self.const_data_ptr(), lines, positions, index.numel(),
       product(self.sizes().slice(1)), self.dtype().itemsize(),
       made.mutable_data_ptr());
  return made;
}

}  // namespace xpurt

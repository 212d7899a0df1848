// Loops over tensors for the host forms of random numbers.
#pragma once

#include <ATen/Dispatch.h>
#include <ATen/Dispatch_v2.h>
#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>

#include <algorithm>

#include "random/batch.h"
#include "random/draw.h"
#include "random/forms.h"

namespace xpurt {

using at::Tensor;

// The elements of a tensor in row-major order.
template <typename T>
class Elements {
 public:
  explicit Elements(const Tensor& tensor)
      : data_(static_cast<T*>(const_cast<void*>(tensor.const_data_ptr()))),
        sizes_(tensor.sizes()),
        strides_(tensor.strides()),
        contiguous_(tensor.is_contiguous()) {}

  T& operator[](int64_t i) const { return data_[contiguous_ ? i : offset_of(i)]; }

 private:
  int64_t offset_of(int64_t i) const {
    int64_t offset = 0;
    for (size_t d = sizes_.size(); d-- > 0;) {
      offset += i % sizes_[d] * strides_[d];
      i /= sizes_[d];
    }
    return offset;
  }

  T* data_;
  c10::IntArrayRef sizes_;
  c10::IntArrayRef strides_;
  bool contiguous_;
};

// Calls body(words, first element, number of elements) for each batch of blocks of
// `per` elements.
template <typename Body>
void each_batch(int64_t numel, int per, Draw draw, const Body& body) {
  constexpr int64_t kGrain = 2048 / Batch::kBlocks;
  const int64_t elements = int64_t{per} * Batch::kBlocks;
  const int64_t batches = (numel + elements - 1) / elements;
  at::parallel_for(0, batches, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t batch = begin; batch < end; ++batch) {
      const int64_t first = batch * elements;
      body(batch_of(draw.seed, draw.offset, batch * Batch::kBlocks), first,
           static_cast<int>(std::min(elements, numel - first)));
    }
  });
}

// The same for each block of `per` elements.
template <typename Body>
void each_block(int64_t numel, int per, Draw draw, const Body& body) {
  each_batch(numel, per, draw, [&](const Batch& batch, int64_t first, int count) {
    for (int i = 0; i * per < count; ++i) {
      Single::Words words;
      for (int k = 0; k < 4; ++k) words.word[k] = batch.word[k][i];
      body(words, first + i * per, std::min(per, count - i * per));
    }
  });
}

template <typename F>
typename F::Words as(const Single::Words& words) {
  return std::bit_cast<typename F::Words>(words);
}

// Sets each element to value(words, number of the element in its block).
template <typename T, typename Value>
void fill(const Tensor& self, int per, Draw draw, const Value& value) {
  const Elements<T> elements(self);
  each_block(self.numel(), per, draw,
             [&](const Single::Words& words, int64_t first, int count) {
               for (int k = 0; k < count; ++k) {
                 elements[first + k] = static_cast<T>(value(words, k));
               }
             });
}

// Sets each element to finish(mean + std * its normal number).
template <typename T, typename Finish>
void fill_normals(const Tensor& self, Draw draw, double mean, double std,
                  const Finish& finish) {
  using F = FunctionsFor<T>;
  using R = decltype(F::unit_of(0));
  const Elements<T> elements(self);
  if constexpr (std::is_same_v<F, Single>) {
    each_batch(self.numel(), F::NUMBERS, draw,
               [&](const Batch& batch, int64_t first, int count) {
                 const auto made = normals_of_batch(batch, R(mean), R(std));
                 for (int k = 0; k < count; ++k) {
                   elements[first + k] = static_cast<T>(finish(made[k]));
                 }
               });
  } else {
    each_block(self.numel(), F::NUMBERS, draw,
               [&](const Single::Words& words, int64_t first, int count) {
                 const auto made = F::normals_of(as<F>(words));
                 for (int k = 0; k < count; ++k) {
                   elements[first + k] =
                       static_cast<T>(finish(R(mean) + R(std) * made.value[k]));
                 }
               });
  }
}

#define FOR_FLOATING(type, name, ...) \
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, type, name, __VA_ARGS__)
#define FOR_ALL(type, name, ...)                                               \
  AT_DISPATCH_V2(type, name, AT_WRAP(__VA_ARGS__), AT_EXPAND(AT_ALL_TYPES),    \
                 AT_EXPAND(AT_BAREBONES_UNSIGNED_TYPES), at::kBool, at::kHalf, \
                 at::kBFloat16)

}  // namespace xpurt

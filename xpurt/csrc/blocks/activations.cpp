#include "blocks/activations.h"

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include <algorithm>
#include <cmath>

#include "blocks/block_kernels.h"

namespace xpurt {
namespace {

template <typename From>
void widen(const void* x, int64_t begin, int64_t size, float* out) {
  const From* const from = static_cast<const From*>(x) + begin;
  for (int64_t k = 0; k < size; ++k) out[k] = static_cast<float>(from[k]);
}

void widen_row(const void* x, c10::ScalarType type, int64_t begin, int64_t size,
               float* out) {
  if (type == c10::ScalarType::BFloat16)
    return widen<c10::BFloat16>(x, begin, size, out);
  if (type == c10::ScalarType::Half) return widen<c10::Half>(x, begin, size, out);
  widen<float>(x, begin, size, out);
}

// The order of int4_groups: the elements of the low halves of `step` bytes, and those
// of the high halves.
void reorder_groups(const float* x, const BlockWeight& weight, int64_t step,
                    float* out) {
  const int64_t half = weight.group / 2;
  for (int64_t first = 0; first < weight.columns; first += weight.group) {
    for (int64_t k = first; k < first + half; k += step, out += 2 * step) {
      std::copy_n(x + k, step, out);
      std::copy_n(x + k + half, step, out + step);
    }
  }
}

}  // namespace

BlockActivations::BlockActivations(const void* x, c10::ScalarType type, int64_t rows,
                                   const BlockWeight& weight)
    : rows_(rows_of(type, rows)),
      parts_((weight.columns + kPart - 1) / kPart),
      together_(parts_together(weight)),
      words_(rows_ * parts_ * kPart),
      scales_(rows_ * parts_) {
  const int64_t times = rows_ / std::max<int64_t>(rows, 1);
  std::vector<float> values(parts_ * kPart), ordered(values.size());
  for (int64_t m = 0; m < rows; ++m) {
    widen_row(x, type, m * weight.columns, weight.columns, values.data());
    if (weight.group > 0) {
      reorder_groups(values.data(), weight, together_ * kPart / 2, ordered.data());
    }
    float* const row = (weight.group > 0 ? ordered : values).data();
    for (int64_t time = 0; time < times; ++time) {
      if (!add_row(row, m * times + time)) return;
      if (time + 1 < times) subtract_row(row, m * times + time);
    }
  }
  all_fit_ = true;
  const BlockKernels& kernels = block_kernels();
  if (kernels.unit_bytes == nullptr) return;
  unit_bytes_ = kernels.unit_bytes(weight);
  if (unit_bytes_ == 0) return;
  units_.resize(rows_ * unit_bytes_);
  for (int64_t row = 0; row < rows_; ++row) {
    kernels.write_units(weight, words(row), scales(row),
                        units_.data() + row * unit_bytes_);
  }
}

bool BlockActivations::add_row(const float* values, int64_t row) {
  const BlockKernels& kernels = block_kernels();
  for (int64_t p = 0; p < parts_; p += together_) {
    int16_t* const words = words_.data() + (row * parts_ + p) * kPart;
    PartScale& scale = scales_[row * parts_ + p / together_];
    if (!kernels.to_words(values + p * kPart, together_ * kPart, words, scale)) {
      return false;
    }
  }
  return true;
}

void BlockActivations::subtract_row(float* values, int64_t row) const {
  const int64_t step = together_ * kPart;
  for (int64_t k = 0; k < parts_ * kPart; ++k) {
    const float rest =
        values[k] - static_cast<float>(words(row)[k]) * scales(row)[k / step].scale;
    values[k] = std::abs(rest) < 1e-20F ? 0 : rest;  // the row itself is far larger
  }
}

}  // namespace xpurt

// The products of transformed tiles and a transformed weight.
#pragma once

#include <cstdint>

namespace xpurt {

constexpr int64_t kPanel = 32;  // adjacent columns of a packed weight

// (rows, inner) times (inner, kPanel). left: rows `left_stride` floats apart; panel:
// contiguous; product: rows `product_stride` floats apart.
void multiply_panel(const float* left, int64_t left_stride, int64_t rows,
                    const float* panel, int64_t inner, float* product,
                    int64_t product_stride);

}  // namespace xpurt

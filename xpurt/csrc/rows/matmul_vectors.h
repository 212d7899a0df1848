// How a matrix product is cut into the blocks of matmul_vectors.cl.
#pragma once

#include <optional>
#include <string>

#include "program/program.h"
#include "rows/launch.h"

namespace xpurt {

// Sizes of a block, and of the tile of it that is in registers: `strip` rows of two
// vectors of `lanes` elements.
struct VectorBlocks {
  int64_t lanes, strip, rows, columns, depth;

  // As the kernel's source is asked for with it.
  std::string text() const;
};

// Blocks of elements of that size for the device; none if its work-items are no threads
// with vectors, or its local memory is too small.
std::optional<VectorBlocks> vector_blocks(const DeviceTraits& device,
                                          int64_t element_bytes);

// The part of a result of m rows and n columns that one work-item computes.
struct VectorPart {
  int64_t rows, columns;
  Range range;
};
VectorPart vector_part(const VectorBlocks& blocks, const DeviceTraits& device,
                       std::array<int64_t, 4> batch_m_n_k);

// For tests: what devices are taken to have as `vector_width`; 0: what they say.
void force_vector_width(int width) noexcept;

}  // namespace xpurt

// The division of a matrix product into the blocks of matmul_vectors.cl, or into the
// tiles of matmul_tiles.cl.
#pragma once

#include <optional>
#include <string>

#include "program/program.h"
#include "rows/launch.h"

namespace xpurt {

// Sizes of a block, and of its tile in registers: `strip` rows of two vectors of
// `lanes` elements.
struct VectorBlocks {
  int64_t lanes, strip, rows, columns, depth;

  // The sizes as they appear in the kernel's key.
  std::string text() const;
};

// The blocks for elements of that size on the device. nullopt if a work-item of the
// device is not a thread with vector registers, or if its local memory is too small.
std::optional<VectorBlocks> vector_blocks(const DeviceTraits& device,
                                          int64_t element_bytes);

// The part of a result of m rows and n columns that one work-item computes.
struct VectorPart {
  int64_t rows, columns;
  Range range;
};
VectorPart vector_part(const VectorBlocks& blocks, const DeviceTraits& device,
                       std::array<int64_t, 4> batch_m_n_k);

// The work-items along each side of a tile: as many as the device has work-items in a
// work-group, and local memory for the slices of both operands.
int64_t items_of_tile(const DeviceTraits& device, int64_t element_bytes);

// The range for the tiles of a result.
Range tile_range(int64_t items, std::array<int64_t, 3> batch_m_n);

// For tests: replaces the `vector_width` of all devices; 0: the reported one.
void force_vector_width(int width) noexcept;

}  // namespace xpurt

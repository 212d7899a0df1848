#include "rows/matmul_vectors.h"

#include <algorithm>
#include <atomic>
#include <cmath>

namespace xpurt {
namespace {

std::atomic<int> forced_width{0};

// A work-item of a tile computes kEach x kEach elements, as in the template.
constexpr int64_t kEach = 4;

int64_t parts(int64_t size, int64_t most) {
  return (size + most - 1) / most;
}

int64_t multiple(int64_t size, int64_t unit) {
  return parts(size, unit) * unit;
}

}  // namespace

void force_vector_width(int width) noexcept {
  forced_width = width;
}

std::string VectorBlocks::text() const {
  std::string text;
  for (int64_t each : {lanes, strip, rows, columns, depth}) {
    if (!text.empty()) text += ',';
    text += std::to_string(each);
  }
  return text;
}

std::optional<VectorBlocks> vector_blocks(const DeviceTraits& device,
                                          int64_t element_bytes) {
  const int forced = forced_width.load(std::memory_order_relaxed);
  const int width = forced != 0 ? forced : device.vector_width;
  if (width != 4 && width != 8 && width != 16) return std::nullopt;
  VectorBlocks blocks{};
  blocks.lanes = width * static_cast<int64_t>(sizeof(float)) / element_bytes;
  // Sums take 24 of 32 registers, or 12 of the 16 registers of narrower vectors.
  blocks.strip = width == 16 ? 12 : 6;
  const int64_t panel = 2 * blocks.lanes;
  // Local memory holds rows x depth, depth x columns, and the sums, rows x columns. A
  // block reads the least memory if the three have about the same size.
  const auto elements = static_cast<int64_t>(device.local_memory) / element_bytes;
  const auto side = static_cast<int64_t>(std::sqrt(static_cast<double>(elements) / 3));
  blocks.depth = side / panel * panel;
  blocks.rows = side / blocks.strip * blocks.strip;
  if (blocks.depth == 0 || blocks.rows == 0) return std::nullopt;
  blocks.columns = (elements - blocks.rows * blocks.depth) /
                   (blocks.rows + blocks.depth) / panel * panel;
  if (blocks.columns == 0) return std::nullopt;
  return blocks;
}

VectorPart vector_part(const VectorBlocks& blocks, const DeviceTraits& device,
                       std::array<int64_t, 4> batch_m_n_k) {
  // The number of multiplications that is worth another work-group.
  constexpr int64_t kWorthGroup = 1 << 18;
  const auto [batch, m, n, k] = batch_m_n_k;
  const int64_t panel = 2 * blocks.lanes;
  int64_t down = parts(m, blocks.rows), across = parts(n, blocks.columns);
  const int64_t wanted =
      std::min<int64_t>(device.compute_units, batch * m * n * k / kWorthGroup);
  while (batch * down * across < wanted) {
    const bool by_rows = m > down * blocks.strip, by_columns = n > across * panel;
    if (!by_rows && !by_columns) break;
    if (by_rows && (!by_columns || m * across >= n * down)) {
      ++down;
    } else {
      ++across;
    }
  }
  VectorPart part;
  part.rows = multiple(parts(m, down), blocks.strip);
  part.columns = multiple(parts(n, across), panel);
  part.range.global = {static_cast<size_t>(parts(n, part.columns)),
                       static_cast<size_t>(parts(m, part.rows)),
                       static_cast<size_t>(batch)};
  return part;
}

int64_t items_of_tile(const DeviceTraits& device, int64_t element_bytes) {
  const int64_t depth = element_bytes > 8 ? 8 : 16;  // as in the template
  int64_t items = 16;
  const auto fits = [&] {
    const int64_t bytes = 2 * depth * (items * kEach + 1) * element_bytes;
    return items * items <= static_cast<int64_t>(device.max_work_group) &&
           bytes <= static_cast<int64_t>(device.local_memory);
  };
  while (items > 1 && !fits()) items /= 2;
  return items;
}

Range tile_range(int64_t items, std::array<int64_t, 3> batch_m_n) {
  const auto [batch, m, n] = batch_m_n;
  const auto side = static_cast<size_t>(items);
  Range range;
  range.local = {side, side, 1};
  range.global = {static_cast<size_t>(parts(n, items * kEach)) * side,
                  static_cast<size_t>(parts(m, items * kEach)) * side,
                  static_cast<size_t>(batch)};
  return range;
}

}  // namespace xpurt

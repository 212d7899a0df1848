#include "panels/linear.h"

#include <ATen/Parallel.h>

#include <algorithm>

namespace xpurt {
namespace {

constexpr int64_t kRows = 192;  // of a block
// Input channels of a block. Longer sums in one register are less exact.
constexpr int64_t kInner = 256;

int64_t divide_up(int64_t number, int64_t by) {
  return (number + by - 1) / by;
}

struct Range {
  int64_t begin;
  int64_t end;

  int64_t size() const { return end - begin; }
};

// The part `index` of `parts` about equal ones.
Range part_of(int64_t size, int64_t parts, int64_t index) {
  return {index * size / parts, (index + 1) * size / parts};
}

Added added_first(const PanelProduct& of, int64_t row, int64_t column) {
  if (of.other != nullptr) return {of.other + row * of.columns + column, of.columns};
  if (of.bias != nullptr) return {of.bias + column, 0};
  return {};
}

// What the products did not add, and the ReLU.
void finish(const float* bias, bool relu, float* values, int64_t size) {
  for (int64_t n = 0; n < size; ++n) {
    if (bias != nullptr) values[n] += bias[n];
    if (relu && values[n] < 0) values[n] = 0;
  }
}

void multiply(const Kernels& kernels, const PanelProduct& of, Range rows, Range panels,
              float* result) {
  const int64_t first = panels.begin * kernels.panel;
  const int64_t size = panels.size() * kernels.panel;
  const int64_t blocks = std::max<int64_t>(1, divide_up(of.inner, kInner));
  for (int64_t block = 0; block < blocks; ++block) {
    const Range inner = part_of(of.inner, blocks, block);
    for (int64_t panel = panels.begin; panel < panels.end; ++panel) {
      const int64_t column = panel * kernels.panel;
      float* const to = result + rows.begin * of.columns + column;
      Added added{to, of.columns};
      if (block == 0) added = added_first(of, rows.begin, column);
      kernels.multiply_panel(
          of.left + rows.begin * of.inner + inner.begin, of.inner, rows.size(),
          of.weight + (panel * of.inner + inner.begin) * kernels.panel, inner.size(),
          to, of.columns, added);
    }
  }
  const bool has_both = of.bias != nullptr && of.other != nullptr;
  if (!has_both && !of.relu) return;
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    finish(has_both ? of.bias + first : nullptr, of.relu,
           result + row * of.columns + first, size);
  }
}

}  // namespace

void multiply_panels(const Kernels& kernels, const PanelProduct& product,
                     float* result) {
  const int64_t panels = product.columns / kernels.panel;
  const int64_t threads = at::get_num_threads();
  const int64_t blocks = divide_up(product.rows, kRows);
  // Few blocks are divided by panels: each thread then reads a part of the weight.
  const int64_t parts =
      blocks >= threads ? 1 : std::min(panels, divide_up(threads, blocks));
  at::parallel_for(0, blocks * parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; ++at) {
      multiply(kernels, product, part_of(product.rows, blocks, at / parts),
               part_of(panels, parts, at % parts), result);
    }
  });
}

}  // namespace xpurt

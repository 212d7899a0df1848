#include "panels/linear.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <vector>

#include "lanes/lines.h"

namespace xpurt {
namespace {

// Of a block of the result.
constexpr int64_t kRows = 192;
constexpr int64_t kPanels = 16;
// Input channels of a block. Longer sums in one register are less exact.
constexpr int64_t kInner = 256;

struct Range {
  int64_t begin;
  int64_t end;

  int64_t size() const { return end - begin; }
};

// The part `index` of `parts` about equal ones.
Range part_of(int64_t size, int64_t parts, int64_t index) {
  return {index * size / parts, (index + 1) * size / parts};
}

// The sums over the input channels of a block; `stride`: of the rows of `to`.
void multiply_block(const Kernels& kernels, const PanelProduct& of, Range rows,
                    Range inner, int64_t panel, Added added, float* to,
                    int64_t stride) {
  const float* weight = of.weight + (panel * of.inner + inner.begin) * kernels.panel;
  kernels.multiply_panel(of.left + rows.begin * of.inner + inner.begin, of.inner,
                         rows.size(), weight, inner.size(),
                         weight + of.inner * kernels.panel, to, stride, added);
}

template <typename Multiply>
void for_each_block(const PanelProduct& of, const Multiply& multiply) {
  const int64_t blocks = std::max<int64_t>(1, divide_up(of.inner, kInner));
  for (int64_t block = 0; block < blocks; ++block) {
    multiply(part_of(of.inner, blocks, block), block == 0);
  }
}

Added added_first(const PanelProduct& of, int64_t row, int64_t column) {
  if (of.other != nullptr) return {of.other + row * of.columns + column, of.columns};
  if (of.bias != nullptr) return {of.bias + column, 0};
  return {};
}

void multiply_whole_panels(const Kernels& kernels, const PanelProduct& of, Range rows,
                           Range panels, float* result) {
  for_each_block(of, [&](Range inner, bool first) {
    for (int64_t panel = panels.begin; panel < panels.end; ++panel) {
      const int64_t column = panel * kernels.panel;
      float* const to = result + rows.begin * of.columns + column;
      const Added added =
          first ? added_first(of, rows.begin, column) : Added{to, of.columns};
      multiply_block(kernels, of, rows, inner, panel, added, to, of.columns);
    }
  });
  const bool has_both = of.bias != nullptr && of.other != nullptr;
  if (!has_both && of.after == AfterSum::none) return;
  const int64_t column = panels.begin * kernels.panel;
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    kernels.finish_row(has_both ? of.bias + column : nullptr, of.after,
                       result + row * of.columns + column,
                       panels.size() * kernels.panel);
  }
}

// The last columns of the result are not a whole panel.
void multiply_last_panel(const Kernels& kernels, const PanelProduct& of, Range rows,
                         float* result) {
  const int64_t panel = of.columns / kernels.panel;
  const int64_t column = panel * kernels.panel, size = of.columns - column;
  std::vector<float> sums(rows.size() * kernels.panel);
  for_each_block(of, [&](Range inner, bool) {
    multiply_block(kernels, of, rows, inner, panel, {sums.data(), kernels.panel},
                   sums.data(), kernels.panel);
  });
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    const int64_t at = row * of.columns + column;
    float* const values = sums.data() + (row - rows.begin) * kernels.panel;
    for (int64_t n = 0; n < size; ++n) {
      if (of.other != nullptr) values[n] += of.other[at + n];
      if (of.bias != nullptr) values[n] += of.bias[column + n];
    }
    kernels.finish_row(nullptr, of.after, values, kernels.panel);
    std::copy_n(values, size, result + at);
  }
}

void multiply(const Kernels& kernels, const PanelProduct& of, Range rows, Range panels,
              float* result) {
  const int64_t whole = of.columns / kernels.panel;
  const int64_t end = std::min(panels.end, whole);
  if (panels.begin < end) {
    multiply_whole_panels(kernels, of, rows, {panels.begin, end}, result);
  }
  if (panels.end > whole) multiply_last_panel(kernels, of, rows, result);
}

}  // namespace

void multiply_panels(const Kernels& kernels, const PanelProduct& product,
                     float* result) {
  const int64_t panels = divide_up(product.columns, kernels.panel);
  const int64_t blocks = divide_up(product.rows, kRows);
  // Few blocks are divided further: each thread then reads a part of the weight.
  const int64_t parts = std::min(
      panels,
      std::max(divide_up(panels, kPanels), divide_up(at::get_num_threads(), blocks)));
  at::parallel_for(0, blocks * parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end; ++at) {
      multiply(kernels, product, part_of(product.rows, blocks, at / parts),
               part_of(panels, parts, at % parts), result);
    }
  });
}

}  // namespace xpurt

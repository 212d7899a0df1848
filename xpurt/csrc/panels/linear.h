// Products with a weight in panels of adjacent output channels.
#pragma once

#include "lanes/kernels.h"

namespace xpurt {

// Note [Products of panels]
// ~~~~~~~~~~~~~~~~~~~~~~~~~
// The kernels of Winograd's algorithm multiply rows by a panel of a packed weight. On a
// processor with AVX2 they take less time than PyTorch's products do, by MKL, which
// packs the weight in each call, or by oneDNN: see takes_panels in
// functional/panels.py.
//
// A block of rows and of input channels stays in the cache of a core while all panels
// pass (Goto and van de Geijn, 2008).

struct PanelProduct {
  int64_t rows;
  int64_t inner;
  int64_t columns;
  const float* left;  // (rows, inner)
  const float*
      weight;          // (panels, inner, panel), with any numbers after the last column
  const float* bias;   // (columns), or null
  const float* other;  // (rows, columns), or null
  AfterSum after;
};

// result: (rows, columns). Runs on PyTorch's threads.
void multiply_panels(const Kernels& kernels, const PanelProduct& product,
                     float* result);

}  // namespace xpurt

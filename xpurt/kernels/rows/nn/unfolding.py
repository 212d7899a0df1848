"""Rows between images and matrices of columns.

A column is a window, and has one row per element of the window. Elements outside of the
image are 0.
"""

from xpurt.kernels.kinds.custom_kernel import CustomKernel, Step
from xpurt.kernels.kinds.row import FLOATING_ONLY
from xpurt.kernels.rows.nn.windows import LISTS

WINDOWS = """
#define WINDOWS(size, d) \\
  (((size) + 2 * PADDING(d) - DILATION(d) * (KERNEL(d) - 1) - 1) / STEP(d) + 1)
"""

TO_COLUMNS = Step(
    over="out",
    text="""
  long index[8];
  const long to = out_unravel(i, index);
  const long row = index[out_RANK - 2], column = index[out_RANK - 1];
  const long height = self_size(self_RANK - 2), width = self_size(self_RANK - 1);
  const long across_windows = WINDOWS(width, 1);
  const long y = column / across_windows * STEP(0) - PADDING(0)
                 + row / KERNEL(1) % KERNEL(0) * DILATION(0);
  const long x = column % across_windows * STEP(1) - PADDING(1)
                 + row % KERNEL(1) * DILATION(1);
  index[self_RANK - 3] = row / (KERNEL(0) * KERNEL(1));
  index[self_RANK - 2] = y;
  index[self_RANK - 1] = x;
  const bool inside = y >= 0 && y < height && x >= 0 && x < width;
  out_store(to, inside ? self_load(self_at(index)) : 0);
""",
)

TO_IMAGE = Step(
    over="out",
    text="""
  long index[8];
  const long to = out_unravel(i, index);
  const long plane = index[out_RANK - 3];
  const int y = index[out_RANK - 2] + PADDING(0);
  const int x = index[out_RANK - 1] + PADDING(1);
  const int rows = WINDOWS(output_size[0], 0), columns = WINDOWS(output_size[1], 1);
  const int down = STEP(0), right = STEP(1);
  index[self_RANK - 2] = index[self_RANK - 1] = 0;
  const long base = out_RANK == 4 ? index[0] * self_stride(0) : 0;
  C sum = 0;
  for (int k = 0; k < KERNEL(0); ++k) {
    const int from_y = y - k * (int)DILATION(0);
    if (from_y < 0 || from_y % down != 0 || from_y / down >= rows) continue;
    for (int j = 0; j < KERNEL(1); ++j) {
      const int from_x = x - j * (int)DILATION(1);
      if (from_x < 0 || from_x % right != 0 || from_x / right >= columns) continue;
      const long row = (plane * KERNEL(0) + k) * KERNEL(1) + j;
      const long column = (long)(from_y / down) * columns + from_x / right;
      sum += self_load(base + row * self_stride(self_RANK - 2)
                       + column * self_stride(self_RANK - 1));
    }
  }
  out_store(to, sum);
""",
)

ROWS = (
    CustomKernel("im2col", (TO_COLUMNS,), FLOATING_ONLY, functions=LISTS + WINDOWS),
    CustomKernel("col2im", (TO_IMAGE,), FLOATING_ONLY, functions=LISTS + WINDOWS),
)

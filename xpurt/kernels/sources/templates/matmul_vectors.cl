// out = alpha * a @ b (+ beta * self), any strides, for devices whose work-items are
// threads with vectors. One work-item computes a block of the result, from copies of
// parts of a and b in local memory, which have the order in which they are read. In
// registers it has STRIP rows of two vectors (Van Zee and van de Geijn, 2015). Sums
// stay in local memory until the last part of k, so that the result is read and written
// once. That is done tile by tile, so that it overlaps with the multiplication of the
// next tile.
#define LANES $lanes
#define STRIP $strip
#define ROWS $rows
#define COLUMNS $columns
#define DEPTH $depth
#define WIDTH (2 * LANES)
#define EACH __attribute__((opencl_unroll_hint)) for

typedef $storage Stored;
typedef $vector Vector;
typedef struct {
  long m, n, k;
  long out[3], a[3], b[3], self[3];  // strides: batch, row, column
  long rows, columns;                // of a block
} Layout;

#if $narrow
// Like bfloat16_of, for vectors.
static ushort$lanes bfloat16_of_vector(float$lanes value) {
  const uint$lanes bits = as_uint$lanes(value);
  const uint$lanes rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  return convert_ushort$lanes(value != value ? (uint$lanes)(0x7fc0) : rounded);
}
#endif

// By rounds of interleaving. Each round rotates the bits of (row, column) by one.
static void transpose(Vector* x) {
  EACH(int turn = 1; turn < LANES; turn *= 2) {
    Vector y[LANES];
    EACH(int r = 0; r < LANES / 2; ++r) {
      y[2 * r].even = x[r].lo;
      y[2 * r].odd = x[r + LANES / 2].lo;
      y[2 * r + 1].even = x[r].hi;
      y[2 * r + 1].odd = x[r + LANES / 2].hi;
    }
    EACH(int r = 0; r < LANES; ++r) x[r] = y[r];
  }
}

// to[r * pitch + c] = p[r * row + c * column]
static void copy_plain(__local C* to, __global const Stored* p, long row, long column,
                       long rows, long columns, long pitch) {
  for (long r = 0; r < rows; ++r) {
    __local C* line = to + r * pitch;
    long c = 0;
    if (column == 1) {
      for (; c + LANES <= columns; c += LANES) {
        const long i = r * row + c;
        vstore$lanes($load_vector, 0, line + c);
      }
    }
    for (; c < columns; ++c) {
      const long i = r * row + c * column;
      line[c] = $load;
    }
  }
}

// The same for row == 1: a vector of p is a column of `to`.
static void copy_transposed(__local C* to, __global const Stored* p, long column,
                            long rows, long columns, long pitch) {
  const long whole = rows / LANES * LANES, across = columns / LANES * LANES;
  for (long c = 0; c < across; c += LANES) {
    for (long r = 0; r < whole; r += LANES) {
      Vector x[LANES];
      EACH(int l = 0; l < LANES; ++l) {
        const long i = r + (c + l) * column;
        x[l] = $load_vector;
      }
      transpose(x);
      EACH(int l = 0; l < LANES; ++l) {
        vstore$lanes(x[l], 0, to + (r + l) * pitch + c);
      }
    }
  }
  copy_plain(to + whole * pitch, p + whole, 1, column, rows - whole, columns, pitch);
  copy_plain(to + across, p + across * column, 1, column, whole, columns - across,
             pitch);
}

static void clear(__local C* to, long size) {
  for (long i = 0; i < size; ++i) to[i] = 0;
}

static void copy(__local C* to, __global const Stored* p, long row, long column,
                 long rows, long columns, long pitch) {
  if (row == 1 && column != 1) {
    copy_transposed(to, p, column, rows, columns, pitch);
  } else {
    copy_plain(to, p, row, column, rows, columns, pitch);
  }
}

// sums (+)= left @ right. The rows of `left` are DEPTH apart.
#define MULTIPLY(HEIGHT)                                                          \
  static void multiply_##HEIGHT(__local C* sums, __local const C* left,           \
                                __local const C* right, long depth, bool first) { \
    Vector low[HEIGHT], high[HEIGHT];                                             \
    EACH(int r = 0; r < HEIGHT; ++r) {                                            \
      low[r] = first ? (Vector)(0) : vload$lanes(2 * r, sums);                    \
      high[r] = first ? (Vector)(0) : vload$lanes(2 * r + 1, sums);               \
    }                                                                             \
    for (long k = 0; k < depth; ++k) {                                            \
      const Vector b0 = vload$lanes(2 * k, right);                                \
      const Vector b1 = vload$lanes(2 * k + 1, right);                            \
      EACH(int r = 0; r < HEIGHT; ++r) {                                          \
        const Vector a = (Vector)(left[r * DEPTH + k]);                           \
        low[r] += a * b0;                                                         \
        high[r] += a * b1;                                                        \
      }                                                                           \
    }                                                                             \
    EACH(int r = 0; r < HEIGHT; ++r) {                                            \
      vstore$lanes(low[r], 2 * r, sums);                                          \
      vstore$lanes(high[r], 2 * r + 1, sums);                                     \
    }                                                                             \
  }
MULTIPLY($strip)
MULTIPLY(4)
MULTIPLY(1)

// out[r][c] of a tile, from its sums.
static void finish($params, __local const C* line, long at, long from, long rows,
                   long width, const Layout* layout) {
  for (long r = 0; r < rows; ++r) {
    long c = 0;
    if (layout->out[2] == 1 && layout->self[2] == 1) {
      for (; c + LANES <= width; c += LANES) {
        Vector value = alpha * vload$lanes(0, line + c);
        long i;
#if $adds
        i = from + c;
        value += beta * $load_vector3;
#endif
        value = $activation_vector;
        i = at + c;
        $store_vector;
      }
    }
    for (; c < width; ++c) {
      C value = alpha * line[c];
      long i;
#if $adds
      i = from + c * layout->self[2];
      value += beta * $load3;
#endif
      value = $activation;
      i = at + c * layout->out[2];
      $store;
    }
    line += WIDTH;
    at += layout->out[1];
    from += layout->self[1];
  }
}

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void $entry($params, const Layout layout) {
  // Strips of rows; panels of WIDTH columns; one tile of sums for each strip and panel.
  __local C left[ROWS * DEPTH] __attribute__((aligned(64)));
  __local C right[COLUMNS * DEPTH] __attribute__((aligned(64)));
  __local C sums[ROWS * COLUMNS] __attribute__((aligned(64)));
  const long row0 = get_group_id(1) * layout.rows;
  const long column0 = get_group_id(0) * layout.columns;
  const long batch = get_group_id(2);
  const long rows = min(layout.rows, layout.m - row0);
  const long columns = min(layout.columns, layout.n - column0);
  p1 += batch * layout.a[0] + row0 * layout.a[1];
  p2 += batch * layout.b[0] + column0 * layout.b[2];
  // Rows and columns beyond the last one are multiplied, too, and never stored.
  if (rows % STRIP != 0) clear(left + rows / STRIP * STRIP * DEPTH, STRIP * DEPTH);
  if (columns % WIDTH != 0) clear(right + columns / WIDTH * WIDTH * DEPTH, WIDTH * DEPTH);
  long k0 = 0;
  do {
    const long depth = min((long)DEPTH, layout.k - k0);
    copy(left, p1 + k0 * layout.a[2], layout.a[1], layout.a[2], rows, depth, DEPTH);
    for (long c = 0; c < columns; c += WIDTH) {
      copy(right + c * DEPTH, p2 + k0 * layout.b[1] + c * layout.b[2], layout.b[1],
           layout.b[2], depth, min((long)WIDTH, columns - c), WIDTH);
    }
    __local C* tile = sums;
    for (long c = 0; c < columns; c += WIDTH) {
      __local const C* panel = right + c * DEPTH;
      for (long r = 0; r < rows;) {
        const long rest = rows - r;
        __local const C* strip = left + r * DEPTH;
        if (rest > 4) {
          multiply_$strip(tile, strip, panel, depth, k0 == 0);
        } else if (rest > 1) {
          multiply_4(tile, strip, panel, depth, k0 == 0);
        } else {
          multiply_1(tile, strip, panel, depth, k0 == 0);
        }
        if (k0 + DEPTH >= layout.k) {
          const long row = row0 + r, column = column0 + c;
          finish($arguments, tile,
                 batch * layout.out[0] + row * layout.out[1] + column * layout.out[2],
                 batch * layout.self[0] + row * layout.self[1] + column * layout.self[2],
                 min((long)STRIP, rest), min((long)WIDTH, columns - c), &layout);
        }
        r += STRIP;
        tile += STRIP * WIDTH;
      }
    }
    k0 += DEPTH;
  } while (k0 < layout.k);
}

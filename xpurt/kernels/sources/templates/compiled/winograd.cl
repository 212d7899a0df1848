// The transforms of Winograd's convolutions F(4x4, 3x3), for interpolation points 0, A,
// -A, B, -B and infinity. Images are in blocks of 16 channels: (N, channels / 16, HEIGHT,
// WIDTH, 16). A work-item per channel and tile of 4x4 results.
#define A 0.625f
#define B 1.5f
#define A2 (A * A)
#define B2 (B * B)

// The columns of a tile that a tile of results needs.
#define WINOGRAD_TO(d0, d1, d2, d3, d4, d5)                      \
  {                                                              \
    const float even_a = d4 - B2 * d2, odd_a = A * (d3 - B2 * d1); \
    const float even_b = d4 - A2 * d2, odd_b = B * (d3 - A2 * d1); \
    d0 = A2 * B2 * d0 - (A2 + B2) * d2 + d4;                     \
    d5 = A2 * B2 * d1 - (A2 + B2) * d3 + d5;                     \
    d1 = even_a + odd_a;                                         \
    d2 = even_a - odd_a;                                         \
    d3 = even_b + odd_b;                                         \
    d4 = even_b - odd_b;                                         \
  }

// Four results of six numbers.
#define WINOGRAD_FROM(m0, m1, m2, m3, m4, m5)                    \
  {                                                              \
    const float sum_a = m1 + m2, difference_a = A * (m1 - m2);   \
    const float sum_b = m3 + m4, difference_b = B * (m3 - m4);   \
    m0 = m0 + sum_a + sum_b;                                     \
    m1 = difference_a + difference_b;                            \
    m2 = A2 * sum_a + B2 * sum_b;                                \
    m3 = A2 * difference_a + B2 * difference_b + m5;             \
  }

#define WINOGRAD_TILE(channels)                                      \
  const long plane = get_global_id(0), place = get_global_id(1);     \
  if (plane >= channels || place >= tiles) return;                   \
  const long tile = first + place;                                   \
  const long columns = (WIDTH + 3) / 4, rows = (HEIGHT + 3) / 4;     \
  const long top = tile / columns % rows * 4, left = tile % columns * 4; \
  const long image = tile / columns / rows;                          \
  const long base =                                                  \
      (image * (channels / 16) + plane / 16) * HEIGHT * WIDTH * 16 + plane % 16;

#define EVERY_OF_6 _Pragma("unroll") for (int i = 0; i < 6; ++i)
#define EVERY_OF_36 EVERY_OF_6 _Pragma("unroll") for (int j = 0; j < 6; ++j)

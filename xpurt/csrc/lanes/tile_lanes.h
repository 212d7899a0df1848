// Tiles of Winograd's algorithm, part of lanes.h.
// The interpolation points are 0, A, -A, B, -B and infinity.
constexpr float kA = 0.625f;
constexpr float kB = 1.5f;
constexpr float kA2 = kA * kA;
constexpr float kB2 = kB * kB;

// d: six pixels, `step` apart.
INLINE_OF_LANES void transform_pixels(Lanes* d, int64_t step) {
  const Lanes d0 = d[0], d1 = d[step], d2 = d[2 * step];
  const Lanes d3 = d[3 * step], d4 = d[4 * step], d5 = d[5 * step];
  const Lanes even_a = d4 - kB2 * d2, odd_a = kA * (d3 - kB2 * d1);
  const Lanes even_b = d4 - kA2 * d2, odd_b = kB * (d3 - kA2 * d1);
  d[0] = kA2 * kB2 * d0 - (kA2 + kB2) * d2 + d4;
  d[step] = even_a + odd_a;
  d[2 * step] = even_a - odd_a;
  d[3 * step] = even_b + odd_b;
  d[4 * step] = even_b - odd_b;
  d[5 * step] = kA2 * kB2 * d1 - (kA2 + kB2) * d3 + d5;
}

// m: six products, `step` apart, of which four results are made.
INLINE_OF_LANES void transform_products(Lanes* m, int64_t step) {
  const Lanes m1 = m[step], m2 = m[2 * step], m3 = m[3 * step], m4 = m[4 * step];
  const Lanes sum_a = m1 + m2, difference_a = kA * (m1 - m2);
  const Lanes sum_b = m3 + m4, difference_b = kB * (m3 - m4);
  m[0] = m[0] + sum_a + sum_b;
  m[step] = difference_a + difference_b;
  m[2 * step] = kA2 * sum_a + kB2 * sum_b;
  m[3 * step] = kA2 * difference_a + kB2 * difference_b + m[5 * step];
}

template <typename Float>
INLINE_OF_LANES Float* place_of(const Pixel<Float>& pixel, int64_t block,
                                int64_t inside) {
  return pixel.first + block * pixel.block + inside;
}

static OF_LANES void transform_tile(const Pixel<const float>* pixels, Channels channels,
                                    int64_t stride, float* made) {
  for (int64_t c = 0; c < channels.number; c += kLanes) {
    const int64_t block = c / channels.adjacent, inside = c % channels.adjacent;
    Lanes d[kProducts];
    for (int64_t i = 0; i < kPixels; ++i) {
      for (int64_t j = 0; j < kPixels; ++j) {
        load(d[i * kPixels + j], place_of(pixels[i * kPixels + j], block, inside));
      }
      transform_pixels(d + i * kPixels, 1);
    }
    for (int64_t j = 0; j < kPixels; ++j) {
      transform_pixels(d + j, kPixels);
      for (int64_t i = 0; i < kPixels; ++i) {
        const int64_t product = i * kPixels + j;
        store(made + product * stride + c, d[product]);
      }
    }
  }
}

// Three taps, `step` apart, to six numbers, `made_step` apart.
INLINE_OF_LANES void transform_row(const Lanes* taps, int64_t step, Lanes* made,
                                   int64_t made_step) {
  constexpr float kOfA = 1 / (2 * kA2 * (kA2 - kB2));
  constexpr float kOfB = 1 / (2 * kB2 * (kB2 - kA2));
  const Lanes g0 = taps[0], g1 = taps[step], g2 = taps[2 * step];
  const Lanes even_a = kOfA * (g0 + kA2 * g2), odd_a = (kOfA * kA) * g1;
  const Lanes even_b = kOfB * (g0 + kB2 * g2), odd_b = (kOfB * kB) * g1;
  made[0] = (1 / (kA2 * kB2)) * g0;
  made[made_step] = even_a + odd_a;
  made[2 * made_step] = even_a - odd_a;
  made[3 * made_step] = even_b + odd_b;
  made[4 * made_step] = even_b - odd_b;
  made[5 * made_step] = g2;
}

static OF_LANES void transform_taps(const float* taps, int64_t stride, float* made) {
  for (int64_t c = 0; c < kPanel; c += kLanes) {
    Lanes g[9], rows[3 * kPixels], products[kPixels];
    for (int64_t tap = 0; tap < 9; ++tap) load(g[tap], taps + tap * kPanel + c);
    for (int64_t j = 0; j < 3; ++j) transform_row(g + j, 3, rows + j, 3);
    for (int64_t i = 0; i < kPixels; ++i) {
      transform_row(rows + 3 * i, 1, products, 1);
      for (int64_t j = 0; j < kPixels; ++j) {
        store(made + (i * kPixels + j) * stride + c, products[j]);
      }
    }
  }
}

static OF_LANES void finish_tile(const float* products, int64_t stride,
                                 Channels channels, const TileEpilogue& epilogue,
                                 const Pixel<const float>* others,
                                 const Pixel<float>* results) {
  for (int64_t c = 0; c < channels.number; c += kLanes) {
    const int64_t block = c / channels.adjacent, inside = c % channels.adjacent;
    Lanes m[kProducts];
    for (int64_t j = 0; j < kPixels; ++j) {
      for (int64_t i = 0; i < kPixels; ++i) {
        const int64_t product = i * kPixels + j;
        load(m[product], products + product * stride + c);
      }
      transform_products(m + j, kPixels);
    }
    Lanes bias{};
    if (epilogue.bias != nullptr) load(bias, epilogue.bias + c);
    for (int64_t i = 0; i < kResults; ++i) {
      transform_products(m + i * kPixels, 1);
      for (int64_t j = 0; j < kResults; ++j) {
        Lanes value = m[i * kPixels + j] + bias;
        if (epilogue.other != nullptr) {
          Lanes other;
          load(other, place_of(others[i * kResults + j], block, inside));
          value += other;
        }
        if (epilogue.relu) value = value < 0 ? Lanes{} : value;
        store(place_of(results[i * kResults + j], block, inside), value);
      }
    }
  }
}

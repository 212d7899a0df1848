// The softmax of attention and its operands in panels, part of lanes.h.
using Integers = int32_t __attribute__((vector_size(4 * LANES)));

// exp of numbers that are not positive, 0 below the smallest normal one. The polynomial
// is that of Cephes' expf (Moshier, 1992): an error of about one ulp.
INLINE_OF_LANES Lanes exponential(const Lanes& x) {
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: the sum has no fraction
  const Lanes shifted = x * 1.44269504f + kRound;
  const Lanes power = shifted - kRound;
  const Lanes rest = (x - power * 0.693359375f) - power * -2.12194440e-4f;
  Lanes p = rest * 1.98756915e-4f + 1.39819995e-3f;
  p = p * rest + 8.33345190e-3f;
  p = p * rest + 4.16657958e-2f;
  p = p * rest + 1.66666655e-1f;
  p = p * rest + 0.5f;
  p = p * (rest * rest) + rest + 1.0f;
  Integers bits;
  __builtin_memcpy(&bits, &shifted, sizeof(bits));
  bits = (bits << 23) + (127 << 23);
  Lanes factor;
  __builtin_memcpy(&factor, &bits, sizeof(factor));
  return x < -87.3365f ? Lanes{} : p * factor;  // keeps NaN
}

using AllLanes = std::make_integer_sequence<int64_t, kLanes>;

template <int64_t away, int64_t... lane>
INLINE_OF_LANES Lanes exchanged(const Lanes& x,
                                std::integer_sequence<int64_t, lane...>) {
  return __builtin_shufflevector(x, x, (lane ^ away)...);
}

// In each lane.
template <int64_t away = kLanes / 2>
INLINE_OF_LANES Lanes most_of(const Lanes& x) {
  const Lanes other = exchanged<away>(x, AllLanes());
  const Lanes most = other > x ? other : x;
  if constexpr (away == 1) {
    return most;
  } else {
    return most_of<away / 2>(most);
  }
}

template <int64_t away = kLanes / 2>
INLINE_OF_LANES Lanes sum_of(const Lanes& x) {
  const Lanes sum = x + exchanged<away>(x, AllLanes());
  if constexpr (away == 1) {
    return sum;
  } else {
    return sum_of<away / 2>(sum);
  }
}

static OF_LANES float weigh_row(float* scores, int64_t size, float scale,
                                const float* mask, RowSum& sum) {
  constexpr float kNone = -__builtin_inff();
  Lanes mosts = Lanes{} + kNone;
  const int64_t whole = size / kLanes * kLanes;
  for (int64_t i = 0; i < size; i += kLanes) {
    Lanes score, added{};
    load(score, scores + i);
    if (mask != nullptr) load(added, mask + i);
    score = score * scale + added;
    store(scores + i, score);
    if (i == whole) {
      for (int64_t rest = size; rest < whole + kLanes; ++rest) scores[rest] = kNone;
      load(score, scores + i);
    }
    mosts = score > mosts ? score : mosts;
  }
  const float before = sum.most, here = most_of(mosts)[0];
  sum.most = here > before ? here : before;
  const Lanes most = Lanes{} + (sum.most == kNone ? 0 : sum.most);
  Lanes sums{};
  for (int64_t i = 0; i < size; i += kLanes) {
    Lanes score;
    load(score, scores + i);
    score = exponential(score - most);
    store(scores + i, score);
    sums += score;
  }
  if (before == kNone) {
    sum.sum = sum_of(sums)[0];
    return 1;
  }
  const float factor = exponential(Lanes{} + (before - most[0]))[0];
  sum.sum = sum.sum * factor + sum_of(sums)[0];
  return factor;
}

static OF_LANES void differentiate_row(const KeyRow& row, int64_t size) {
  for (int64_t i = 0; i < size; i += kLanes) {
    Lanes score, added{}, sum, change, product;
    load(score, row.weights + i);
    if (row.mask != nullptr) load(added, row.mask + i);
    load(sum, row.sums + i);
    load(change, row.changes + i);
    load(product, row.products + i);
    const Lanes weight = exponential(score * row.scale + added - sum);
    change = weight * (change - product);
    store(row.weights + i, weight);
    store(row.changes + i, change);
    store(row.panels + i / kPanel * row.panel_stride + i % kPanel, change);
  }
}

static OF_LANES float dot(const float* a, const float* b, int64_t size) {
  Lanes sums{};
  int64_t i = 0;
  for (; i + kLanes <= size; i += kLanes) {
    Lanes x, y;
    load(x, a + i);
    load(y, b + i);
    sums += x * y;
  }
  float sum = sum_of(sums)[0];
  for (; i < size; ++i) sum += a[i] * b[i];
  return sum;
}

template <int64_t... lane>
INLINE_OF_LANES void interleave(const Lanes& a, const Lanes& b, Lanes& low, Lanes& high,
                                std::integer_sequence<int64_t, lane...>) {
  low = __builtin_shufflevector(a, b, (lane / 2 + lane % 2 * kLanes)...);
  high = __builtin_shufflevector(a, b, (lane / 2 + lane % 2 * kLanes + kLanes / 2)...);
}

// Interleaving each row with that half of the rows away, as often as halves can be
// halved, transposes.
static OF_LANES void transpose_lanes(const float* from, int64_t stride, int64_t rows,
                                     float* to) {
  Lanes block[2][kLanes] = {};
  for (int64_t i = 0; i < rows; ++i) load(block[0][i], from + i * stride);
  int at = 0;
  for (int64_t step = kLanes; step > 1; step /= 2, at = 1 - at) {
    for (int64_t i = 0; i < kLanes / 2; ++i) {
      interleave(block[at][i], block[at][i + kLanes / 2], block[1 - at][2 * i],
                 block[1 - at][2 * i + 1], AllLanes());
    }
  }
  for (int64_t i = 0; i < kLanes; ++i) store(to + i * kPanel, block[at][i]);
}

// Of the last values of each row, which are fewer than the lanes.
static OF_LANES void transpose_rest(const float* from, int64_t stride, int64_t rows,
                                    int64_t size, float* to) {
  for (int64_t i = 0; i < size; ++i) {
    for (int64_t row = 0; row < kLanes; ++row) {
      to[i * kPanel + row] = row < rows ? from[row * stride + i] : 0;
    }
  }
}

static OF_LANES void transpose_panel(const float* from, int64_t stride, int64_t rows,
                                     int64_t size, float* to) {
  const int64_t whole = size / kLanes * kLanes;
  for (int64_t first = 0; first < kPanel; first += kLanes) {
    const int64_t here = rows - first < 0        ? 0
                         : rows - first < kLanes ? rows - first
                                                 : kLanes;
    const float* const begin = here > 0 ? from + first * stride : from;
    for (int64_t i = 0; i < whole; i += kLanes) {
      transpose_lanes(begin + i, stride, here, to + i * kPanel + first);
    }
    transpose_rest(begin + whole, stride, here, size - whole,
                   to + whole * kPanel + first);
  }
}

static OF_LANES void copy_panel(const float* from, int64_t stride, int64_t rows,
                                int64_t size, float* to) {
  for (int64_t row = 0; row < rows; ++row, from += stride, to += kPanel) {
    Lanes low{}, high{};
    if (size == kPanel) {
      load(low, from);
      load(high, from + kLanes);
    } else {
      for (int64_t i = 0; i < size; ++i)
        i < kLanes ? low[i] = from[i] : high[i - kLanes] = from[i];
    }
    store(to, low);
    store(to + kLanes, high);
  }
}

static OF_LANES void scale_row(const float* from, int64_t size, float factor,
                               float* to) {
  int64_t i = 0;
  for (; i + kLanes <= size; i += kLanes) {
    Lanes values;
    load(values, from + i);
    store(to + i, values * factor);
  }
  for (; i < size; ++i) to[i] = from[i] * factor;
}

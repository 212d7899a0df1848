// Some tokens of a head, and their rows in panels.
#pragma once

#include <algorithm>

#include "lanes/kernels.h"
#include "lanes/lines.h"
#include "panels/attention.h"

namespace xpurt {

inline int64_t round_up(int64_t size, int64_t to) {
  return divide_up(size, to) * to;
}

struct Tokens {
  int64_t begin;
  int64_t end;

  int64_t size() const { return end - begin; }
};

// Of a head, in floats; `token`: the stride.
struct HeadRows {
  const float* row(int64_t index) const { return first + index * token; }

  const float* first;
  int64_t token;
  int64_t tokens;
  int64_t size;
};

// A head's rows of floats, in `room` if they are stored as bfloat16.
class FloatRows {
 public:
  FloatRows(const Kernels& kernels, bool narrow, int64_t most, int64_t size)
      : kernels_(kernels), size_(size), room_(narrow ? most * size : 0) {}

  HeadRows of(const StoredRows<const void>& stored, int64_t batch, int64_t head,
              Tokens tokens) {
    const int64_t first = stored.at(batch, head, tokens.begin);
    if (!stored.narrow) {
      return {static_cast<const float*>(stored.first) + first, stored.token,
              tokens.size(), size_};
    }
    const auto* const from = static_cast<const uint16_t*>(stored.first) + first;
    for (int64_t i = 0; i < tokens.size(); ++i) {
      kernels_.widen_row(from + i * stored.token, size_, room_.first() + i * size_);
    }
    return {room_.first(), size_, tokens.size(), size_};
  }

 private:
  const Kernels& kernels_;
  const int64_t size_;
  Lines<float> room_;
};

// to = from * factor, of the row that begins at `first`.
inline void write_row(const Kernels& kernels, const float* from, int64_t size,
                      float factor, const StoredRows<void>& to, int64_t first) {
  if (to.narrow) {
    kernels.narrow_row(from, size, factor, static_cast<uint16_t*>(to.first) + first);
  } else {
    kernels.scale_row(from, size, factor, static_cast<float*>(to.first) + first);
  }
}

// Panels of adjacent tokens, each (size, panel), with zeros after the last token.
inline void pack_tokens(const Kernels& kernels, const HeadRows& of, float* to) {
  for (int64_t token = 0; token < of.tokens; token += kernels.panel) {
    kernels.transpose_panel(of.row(token), of.token,
                            std::min(kernels.panel, of.tokens - token), of.size,
                            to + token * of.size);
  }
}

// Panels of adjacent values, each (tokens, panel), with zeros after the last value.
inline void pack_values(const Kernels& kernels, const HeadRows& of, float* to) {
  for (int64_t i = 0; i < of.size; i += kernels.panel) {
    kernels.copy_panel(of.first + i, of.token, of.tokens,
                       std::min(kernels.panel, of.size - i), to + i * of.tokens);
  }
}

}  // namespace xpurt

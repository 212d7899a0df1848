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

// Of a head; `token`: the stride.
struct HeadRows {
  const float* row(int64_t index) const { return first + index * token; }

  const float* first;
  int64_t token;
  int64_t tokens;
  int64_t size;
};

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

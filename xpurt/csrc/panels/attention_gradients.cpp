#include "panels/attention_gradients.h"

#include <ATen/Parallel.h>

#include <limits>

#include "panels/packing.h"

namespace xpurt {
namespace {

// Of a block of scores, whose rows are keys: it stays in the cache of a core.
struct BlockSize {
  int64_t keys;
  int64_t queries;
};
constexpr BlockSize kWhole{96, 128};
constexpr BlockSize kCausal{48, 64};  // less is computed below the diagonal

// One head at a time.
class HeadGradients {
 public:
  HeadGradients(const Kernels& kernels, const PanelAttention& of,
                const PanelAttentionGradients& gradients)
      : kernels_(kernels),
        of_(of),
        gradients_(gradients),
        block_(of.causal ? kCausal : kWhole),
        width_(round_up(of.size, kernels.panel)),
        queries_(round_up(of.queries, kernels.panel)),
        query_tokens_(queries_ * of.size),
        query_values_(of.queries * width_),
        grad_tokens_(queries_ * of.size),
        grad_values_(of.queries * width_),
        key_columns_(of.size * block_.keys),
        of_query_(of.size * queries_),
        of_key_(block_.keys * width_),
        of_value_(block_.keys * width_),
        weights_(block_.keys * block_.queries),
        changes_(block_.keys * block_.queries),
        change_panels_(block_.keys * block_.queries),
        transposed_(std::max(of.queries, of.size) * kernels.panel),
        rows_{{kernels, of.query.narrow, std::max(of.queries, block_.keys), of.size},
              {kernels, of.query.narrow, std::max(of.queries, block_.keys), of.size}},
        sums_(queries_),
        products_(queries_) {}

  void differentiate(int64_t batch, int64_t head) {
    batch_ = batch;
    head_ = head;
    pack();
    std::fill_n(of_query_.first(), of_.size * queries_, 0.0f);
    for (int64_t key = 0; key < of_.keys; key += block_.keys) {
      differentiate({key, std::min(of_.keys, key + block_.keys)});
    }
    write_query();
  }

 private:
  // In one of two rooms, if they are bfloat16.
  HeadRows rows(const StoredRows<const void>& of, Tokens tokens, int room) {
    return rows_[room].of(of, batch_, head_, tokens);
  }

  void pack() {
    const Tokens all{0, of_.queries};
    const HeadRows query = rows(of_.query, all, 0);
    pack_tokens(kernels_, query, query_tokens_.first());
    pack_values(kernels_, query, query_values_.first());
    const HeadRows out = rows(gradients_.out, all, 0);
    const HeadRows grad = rows(gradients_.grad, all, 1);
    pack_tokens(kernels_, grad, grad_tokens_.first());
    pack_values(kernels_, grad, grad_values_.first());
    // Queries after the last one have weights of 0.
    std::fill_n(sums_.first(), queries_, std::numeric_limits<float>::infinity());
    std::fill_n(products_.first(), queries_, 0.0f);
    for (int64_t i = 0; i < of_.queries; ++i) {
      sums_.first()[i] = *gradients_.sums.row(batch_, head_, i);
      products_.first()[i] = kernels_.dot(grad.row(i), out.row(i), of_.size);
    }
  }

  void differentiate(Tokens keys) {
    const HeadRows key = rows(of_.key, keys, 0), value = rows(of_.value, keys, 1);
    transpose_keys(key);
    bool first = true;
    for (int64_t query = 0; query < of_.queries; query += block_.queries) {
      const Tokens queries{query, std::min(of_.queries, query + block_.queries)};
      if (of_.causal && queries.end <= keys.begin) continue;
      multiply_tokens(key, query_tokens_.first(), queries, weights_.first());
      multiply_tokens(value, grad_tokens_.first(), queries, changes_.first());
      for (int64_t i = keys.begin; i < keys.end; ++i) change(keys, i, queries);
      add_values(weights_.first(), grad_values_.first(), keys, queries, first,
                 of_value_.first());
      add_values(changes_.first(), query_values_.first(), keys, queries, first,
                 of_key_.first());
      add_to_query(keys, queries);
      first = false;
    }
    if (first) {  // no query has these keys
      std::fill_n(of_key_.first(), keys.size() * width_, 0.0f);
      std::fill_n(of_value_.first(), keys.size() * width_, 0.0f);
    }
    write(of_key_.first(), keys, of_.scale, gradients_.key);
    write(of_value_.first(), keys, 1, gradients_.value);
  }

  // The keys of a block as columns, times the scale.
  void transpose_keys(const HeadRows& keys) {
    for (int64_t key = 0; key < keys.tokens; key += kernels_.panel) {
      const int64_t number = std::min(kernels_.panel, keys.tokens - key);
      kernels_.transpose_panel(keys.row(key), keys.token, number, of_.size,
                               transposed_.first());
      for (int64_t i = 0; i < of_.size; ++i) {
        kernels_.scale_row(transposed_.first() + i * kernels_.panel, number, of_.scale,
                           key_columns_.first() + i * block_.keys + key);
      }
    }
  }

  // Rows of a block of keys by queries.
  void multiply_tokens(const HeadRows& left, const float* tokens, Tokens queries,
                       float* to) {
    for (int64_t i = queries.begin; i < queries.end; i += kernels_.panel) {
      const float* const panel = tokens + i * of_.size;
      kernels_.multiply_panel(left.first, left.token, left.tokens, panel, of_.size,
                              panel + kernels_.panel * of_.size, to + i - queries.begin,
                              block_.queries, {});
    }
  }

  // From scores and the gradients of weights to weights and the gradients of scores.
  void change(Tokens keys, int64_t key, Tokens queries) {
    const int64_t at = key - keys.begin;
    kernels_.differentiate_row(
        {weights_.first() + at * block_.queries, changes_.first() + at * block_.queries,
         change_panels_.first() + at * kernels_.panel, block_.keys * kernels_.panel,
         mask_of(key, queries), sums_.first() + queries.begin,
         products_.first() + queries.begin, of_.scale},
        round_up(queries.size(), kernels_.panel));
  }

  const float* mask_of(int64_t key, Tokens queries) {
    const bool masked = of_.mask.first != nullptr;
    const bool diagonal = of_.causal && key > queries.begin;
    if (!masked && !diagonal) return nullptr;
    for (int64_t i = 0; i < queries.size(); ++i) {
      mask_[i] =
          masked ? of_.mask.row(batch_, head_, queries.begin + i)[key * of_.mask_key]
                 : 0;
    }
    if (diagonal) {
      std::fill_n(mask_, std::min(key - queries.begin, queries.size()),
                  -std::numeric_limits<float>::infinity());
    }
    return mask_;
  }

  // Adds the products of a block with values of its queries.
  void add_values(const float* block, const float* values, Tokens keys, Tokens queries,
                  bool first, float* to) {
    for (int64_t i = 0; i < width_; i += kernels_.panel) {
      const float* const panel =
          values + i * of_.queries + queries.begin * kernels_.panel;
      kernels_.multiply_panel(block, block_.queries, keys.size(), panel, queries.size(),
                              panel + of_.queries * kernels_.panel, to + i, width_,
                              first ? Added{} : Added{to + i, width_});
    }
  }

  // Gradients of queries are columns until all keys have passed.
  void add_to_query(Tokens keys, Tokens queries) {
    for (int64_t i = queries.begin; i < queries.end; i += kernels_.panel) {
      const float* const panel =
          change_panels_.first() + (i - queries.begin) * block_.keys;
      float* const to = of_query_.first() + i;
      kernels_.multiply_panel(key_columns_.first(), block_.keys, of_.size, panel,
                              keys.size(), panel + block_.keys * kernels_.panel, to,
                              queries_, {to, queries_});
    }
  }

  void write(const float* from, Tokens keys, float factor,
             const StoredRows<void>& to) const {
    for (int64_t i = 0; i < keys.size(); ++i) {
      write_row(kernels_, from + i * width_, of_.size, factor, to,
                to.at(batch_, head_, keys.begin + i));
    }
  }

  void write_query() {
    for (int64_t i = 0; i < of_.size; i += kernels_.panel) {
      const int64_t number = std::min(kernels_.panel, of_.size - i);
      kernels_.transpose_panel(of_query_.first() + i * queries_, queries_, number,
                               of_.queries, transposed_.first());
      for (int64_t query = 0; query < of_.queries; ++query) {
        write_row(kernels_, transposed_.first() + query * kernels_.panel, number, 1,
                  gradients_.query, gradients_.query.at(batch_, head_, query) + i);
      }
    }
  }

  const Kernels& kernels_;
  const PanelAttention& of_;
  const PanelAttentionGradients& gradients_;
  const BlockSize block_;
  const int64_t width_;    // of a head's values, in whole panels
  const int64_t queries_;  // in whole panels
  int64_t batch_ = 0, head_ = 0;
  Lines<float> query_tokens_, query_values_, grad_tokens_, grad_values_;
  Lines<float> key_columns_, of_query_, of_key_, of_value_;
  Lines<float> weights_, changes_, change_panels_, transposed_;
  FloatRows rows_[2];
  Lines<float> sums_, products_;
  float mask_[kWhole.queries] = {};
};

}  // namespace

void differentiate_by_panels(const Kernels& kernels, const PanelAttention& attention,
                             const PanelAttentionGradients& gradients) {
  const int64_t heads = attention.batches * attention.heads;
  at::parallel_for(0, heads, 1, [&](int64_t begin, int64_t end) {
    HeadGradients head(kernels, attention, gradients);
    for (int64_t at = begin; at < end; ++at) {
      head.differentiate(at / attention.heads, at % attention.heads);
    }
  });
}

}  // namespace xpurt

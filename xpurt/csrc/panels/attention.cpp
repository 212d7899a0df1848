#include "panels/attention.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "panels/packing.h"

namespace xpurt {
namespace {

// Of a block of scores, which stays in the cache of a core.
constexpr int64_t kQueries = 96;
constexpr int64_t kCausalQueries = 48;  // less is computed above the diagonal
constexpr int64_t kKeys = 256;

// The attention of one head at a time, whose keys and values are in panels.
class HeadPanels {
 public:
  HeadPanels(const Kernels& kernels, const PanelAttention& of, int64_t most_queries)
      : kernels_(kernels),
        of_(of),
        width_(round_up(of.size, kernels.panel)),
        keys_(round_up(of.keys, kernels.panel) * of.size),
        values_(of.keys * width_),
        scores_(most_queries * kKeys),
        results_(most_queries * width_),
        rows_of_keys_(kernels, of.key.narrow, of.keys, of.size),
        rows_of_queries_(kernels, of.query.narrow, most_queries, of.size),
        sums_(most_queries) {}

  void attend(int64_t batch, int64_t head, Tokens queries, const StoredRows<void>& out,
              const TokenRows<float>& sums) {
    pack(batch, head);
    const HeadRows rows = rows_of_queries_.of(of_.query, batch, head, queries);
    std::fill_n(sums_.begin(), queries.size(),
                RowSum{-std::numeric_limits<float>::infinity(), 0});
    const int64_t last = of_.causal ? std::min(of_.keys, queries.end) : of_.keys;
    for (int64_t key = 0; key < last; key += kKeys) {
      const Tokens keys{key, std::min(last, key + kKeys)};
      multiply_keys(rows, keys);
      for (int64_t query = queries.begin; query < queries.end; ++query) {
        weigh(queries, query, keys);
      }
      multiply_values(queries, keys);
    }
    for (int64_t query = queries.begin; query < queries.end; ++query) {
      const int64_t at = query - queries.begin;
      const auto [most, sum] = sums_[at];
      write_row(kernels_, results_.first() + at * width_, of_.size,
                sum == 0 ? 0 : 1 / sum, out, out.at(batch_, head_, query));
      *sums.row(batch_, head_, query) = sum == 0 ? 0 : most + std::log(sum);
    }
  }

 private:
  void pack(int64_t batch, int64_t head) {
    if (batch == batch_ && head == head_) return;
    batch_ = batch;
    head_ = head;
    const Tokens all{0, of_.keys};
    pack_tokens(kernels_, rows_of_keys_.of(of_.key, batch, head, all), keys_.first());
    pack_values(kernels_, rows_of_keys_.of(of_.value, batch, head, all),
                values_.first());
  }

  void multiply_keys(const HeadRows& queries, Tokens keys) {
    for (int64_t key = keys.begin; key < keys.end; key += kernels_.panel) {
      const float* const panel = keys_.first() + key * of_.size;
      kernels_.multiply_panel(queries.first, queries.token, queries.tokens, panel,
                              of_.size, panel + kernels_.panel * of_.size,
                              scores_.first() + key - keys.begin, kKeys, {});
    }
  }

  // A query's scores become weights, of the keys that it has; others get 0.
  void weigh(Tokens queries, int64_t query, Tokens keys) {
    const int64_t at = query - queries.begin;
    float* const scores = scores_.first() + at * kKeys;
    const int64_t end =
        of_.causal ? std::clamp(query + 1, keys.begin, keys.end) : keys.end;
    const float factor =
        kernels_.weigh_row(scores, end - keys.begin, of_.scale,
                           mask_of(query, {keys.begin, end}), sums_[at]);
    std::fill(scores + (end - keys.begin), scores + keys.size(), 0.0f);
    if (factor == 1 || keys.begin == 0) return;
    float* const results = results_.first() + at * width_;
    kernels_.scale_row(results, width_, factor, results);
  }

  const float* mask_of(int64_t query, Tokens keys) {
    if (of_.mask.first == nullptr) return nullptr;
    const float* const from =
        of_.mask.row(batch_, head_, query) + keys.begin * of_.mask_key;
    for (int64_t i = 0; i < keys.size(); ++i) mask_[i] = from[i * of_.mask_key];
    return mask_;
  }

  void multiply_values(Tokens queries, Tokens keys) {
    for (int64_t i = 0; i < width_; i += kernels_.panel) {
      const float* const panel =
          values_.first() + i * of_.keys + keys.begin * kernels_.panel;
      float* const to = results_.first() + i;
      kernels_.multiply_panel(scores_.first(), kKeys, queries.size(), panel,
                              keys.size(), panel + of_.keys * kernels_.panel, to,
                              width_, keys.begin == 0 ? Added{} : Added{to, width_});
    }
  }

  const Kernels& kernels_;
  const PanelAttention& of_;
  const int64_t width_;  // of a result, in whole panels
  int64_t batch_ = -1, head_ = -1;
  Lines<float> keys_, values_, scores_, results_;
  FloatRows rows_of_keys_, rows_of_queries_;
  std::vector<RowSum> sums_;
  float mask_[kKeys];
};

}  // namespace

void attend_by_panels(const Kernels& kernels, const PanelAttention& attention,
                      const StoredRows<void>& out, const TokenRows<float>& sums) {
  const int64_t most = attention.causal ? kCausalQueries : kQueries;
  const int64_t blocks = divide_up(attention.queries, most);
  const int64_t heads = attention.batches * attention.heads;
  at::parallel_for(0, heads * blocks, 1, [&](int64_t begin, int64_t end) {
    HeadPanels head(kernels, attention, most);
    for (int64_t at = begin; at < end; ++at) {
      const int64_t block = at % blocks, of_batch = at / blocks;
      head.attend(of_batch / attention.heads, of_batch % attention.heads,
                  {block * most, std::min(attention.queries, (block + 1) * most)}, out,
                  sums);
    }
  });
}

}  // namespace xpurt

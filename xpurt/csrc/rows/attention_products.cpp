// Attention by matrix products of oneDNN over blocks of queries, with xpurt's kernels
// between them. The backward pass computes the weights of a block again from its
// scores.
#include <ATen/ops/empty.h>

#include <algorithm>

#include "onednn/matmul.h"
#include "op/element_type.h"
#include "program/program.h"
#include "rows/attention.h"

namespace xpurt {
namespace {

using at::Tensor;

// About how many scores exist at a time: they stay in a CPU's caches.
constexpr int64_t kScores = 1 << 18;

// Some queries of all heads of some of the batch, and the keys that they attend to.
struct QueryBlock {
  int64_t first_batch, batches;
  int64_t first_query, queries;
  int64_t keys;

  Tensor of(const Tensor& tensor) const {
    return tensor.narrow(0, first_batch, batches);
  }
  Tensor of_queries(const Tensor& tensor) const {
    return of(tensor).narrow(2, first_query, queries);
  }
  Tensor of_keys(const Tensor& tensor) const { return of(tensor).narrow(2, 0, keys); }
};

// From the last queries to the first: under a causal mask the last queries attend to
// the most keys.
std::vector<QueryBlock> blocks_of(const Attention& attention) {
  constexpr int64_t kFewest = 64;
  const int64_t per_query = std::max<int64_t>(attention.heads() * attention.keys(), 1);
  const int64_t queries =
      std::min(attention.queries(), std::max(kFewest, kScores / per_query));
  const int64_t batches =
      std::clamp<int64_t>(kScores / (per_query * queries), 1, attention.batch());
  const int64_t steps = (attention.queries() + queries - 1) / queries;
  std::vector<QueryBlock> blocks;
  for (int64_t b = 0; b < attention.batch(); b += batches) {
    for (int64_t step = steps; step-- > 0;) {
      const int64_t first = step * queries;
      QueryBlock block{b, std::min(batches, attention.batch() - b), first,
                       std::min(queries, attention.queries() - first),
                       attention.keys()};
      if (attention.causal) block.keys = std::min(block.keys, first + block.queries);
      blocks.push_back(block);
    }
  }
  return blocks;
}

class Products {
 public:
  Products(const Attention& attention, size_t position)
      : attention_(attention),
        position_(position),
        stream_(current_stream(attention.query.device().index())),
        compute_(computed_in(attention.query.scalar_type())) {}

  void multiply(const Tensor& out, const Tensor& a, const Tensor& b, double alpha = 1,
                double beta = 0) const {
    const Tensor none;
    onednn_multiply(
        {out, a, b, none, static_cast<float>(alpha), static_cast<float>(beta)},
        position_, stream_);
  }

  Tensor room(const QueryBlock& block, c10::ScalarType type) const {
    return at::empty({block.batches, attention_.heads(), block.queries, block.keys},
                     attention_.query.options().dtype(type));
  }
  Tensor room_like(const QueryBlock& block, const Tensor& scores) const {
    return compute_ == type() ? scores : room(block, type());
  }

  Tensor scores(const QueryBlock& block) const {
    Tensor made = room(block, compute_);
    multiply(made, block.of_queries(attention_.query),
             block.of_keys(attention_.key).mT(), attention_.scale);
    return made;
  }

  // Submits a kernel over the rows of a block of scores. Its arguments begin with
  // `written`, then `read`.
  void submit(const char* kernel, const QueryBlock& block, const Tensor& sums,
              std::initializer_list<const Tensor*> written,
              std::initializer_list<const Tensor*> read) const {
    Launch launch(stream_, position_);
    for (const Tensor* each : written) launch.tensor(*each, Access::read_write);
    for (const Tensor* each : read) launch.tensor(*each, Access::read);
    AttentionLayout layout(attention_);
    if (attention_.mask.defined()) {
      launch.tensor(block.of(attention_.mask), Access::read);
    }
    layout.batch = block.batches;
    layout.queries = block.queries;
    layout.keys = block.keys;
    layout.first = block.first_query;
    layout.sums = three_strides(sums);
    launch.structure(&layout, sizeof(layout));
    const size_t lanes = std::max(traits(launch.device()).sub_group, 1);
    const auto heads = static_cast<size_t>(attention_.heads());
    const auto batches = static_cast<size_t>(block.batches);
    launch.submit(
        kernel_for(launch.device(), attention_key(attention_, kernel)),
        cover(launch.device(), {block.queries * lanes, heads, batches}, 8 * lanes));
  }

  c10::ScalarType type() const { return attention_.query.scalar_type(); }
  c10::ScalarType compute() const { return compute_; }

 private:
  const Attention& attention_;
  const size_t position_;
  Stream& stream_;
  const c10::ScalarType compute_;
};

}  // namespace

void attend_by_products(const Attention& attention, const Attended& made,
                        size_t position) {
  const Products by(attention, position);
  for (const QueryBlock& block : blocks_of(attention)) {
    const Tensor scores = by.scores(block);
    const Tensor weights = by.room_like(block, scores);
    const Tensor sums = block.of(made.sums);
    by.submit("attention_softmax", block, sums, {&weights, &sums, &scores}, {});
    by.multiply(block.of_queries(made.out), weights, block.of_keys(attention.value));
  }
}

void attend_backward_by_products(const Attention& attention,
                                 const AttentionBackward& backward,
                                 const AttentionGradients& made, size_t position) {
  const Products by(attention, position);
  const auto& [of_query, of_key, of_value] = made;
  // Partial sums are added in the type of the computation.
  const auto sum_of = [&](const Tensor& tensor) {
    return by.compute() == by.type()
               ? tensor
               : at::empty(tensor.sizes(), tensor.options().dtype(by.compute()));
  };
  Tensor key_sum = sum_of(of_key), value_sum = sum_of(of_value);
  if (attention.causal && attention.queries() < attention.keys()) {
    key_sum.zero_();  // no block reaches the last keys
    value_sum.zero_();
  }
  int64_t begun = -1;  // first_batch of the blocks whose sums have begun
  for (const QueryBlock& block : blocks_of(attention)) {
    const Tensor scores = by.scores(block);
    const Tensor grad = block.of_queries(backward.grad);
    const Tensor grads = by.room(block, by.compute());
    by.multiply(grads, grad, block.of_keys(attention.value).mT());
    const Tensor weights = by.room_like(block, scores);
    const Tensor changes = by.room_like(block, grads);
    const Tensor sums = block.of(backward.sums);
    by.submit("attention_change", block, sums, {&weights, &changes, &scores},
              {&grads, &sums});
    const Tensor query = block.of_queries(attention.query);
    by.multiply(block.of_queries(of_query), changes, block.of_keys(attention.key),
                attention.scale);
    const double beta = block.first_batch == begun ? 1 : 0;
    begun = block.first_batch;
    by.multiply(block.of_keys(key_sum), changes.mT(), query, attention.scale, beta);
    by.multiply(block.of_keys(value_sum), weights.mT(), grad, 1, beta);
  }
  if (!key_sum.is_same(of_key)) {
    of_key.copy_(key_sum);
    of_value.copy_(value_sum);
  }
}

}  // namespace xpurt

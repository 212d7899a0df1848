// One call of attention over sequences: the common part of the ops of FlashAttention
// and of efficient attention, forward and backward.
#pragma once

#include "dispatch/composite/varlen_math.h"
#include "dispatch/composite/varlen_sequences.h"

namespace xpurt {

using MaybeTensor = std::optional<at::Tensor>;

struct VarlenCall {
  VarlenCall(const char* name, const at::Tensor& q, const at::Tensor& k,
             const at::Tensor& v, const MaybeTensor& starts_q,
             const MaybeTensor& starts_k, const MaybeTensor& used_keys, double p,
             std::optional<double> scale);
  virtual ~VarlenCall() = default;

  const char* op;  // for errors
  // (N, L, H, E), (N, S, G, E) and (N, S, G, V); N is 1 for packed sequences.
  at::Tensor query, key, value;
  at::Tensor starts_q, starts_k, used_keys;
  double dropout, scale;
  std::vector<Sequence> sequences;
  std::optional<at::Generator> generator;
  // Memory format of the gradients of query, key and value.
  at::MemoryFormat gradients_format = at::MemoryFormat::Preserve;

  bool packed() const { return starts_q.defined(); }
  void check_types() const;
  // Takes a state of the device's generator for dropout, if there is dropout.
  DropoutState take_dropout();
  // Makes dropout draw the same numbers as the forward pass.
  void repeat_dropout(const DropoutState& state);

  // Returns the output (N, L, H, V). Writes `sums`, unless it is empty.
  at::Tensor forward(const at::Tensor& sums) const;
  // `sums` may be undefined or empty.
  BandedGradients backward(const at::Tensor& grad, const at::Tensor& out,
                           const at::Tensor& sums, bool wants_bias) const;

 protected:
  // Sets the band and the bias of sequence `i`.
  virtual void mask(BandedAttention* made, int64_t i) const = 0;
  // Keys, or values, of sequence `i`: (N, G, keys, E).
  virtual at::Tensor keys_of(const at::Tensor& tensor, const Sequence& each,
                             int64_t i) const;
  // The part of `sums` that belongs to sequence `i`: (N, H, queries).
  virtual at::Tensor sums_of(const at::Tensor& sums, const Sequence& each,
                             int64_t i) const = 0;

 private:
  BandedAttention of(const Sequence& each, int64_t i) const;
};

}  // namespace xpurt

// Weights in the layouts of products, kept beside the weights that they were made of.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

namespace xpurt {

// Note [Packed weights]
// ~~~~~~~~~~~~~~~~~~~~~
// Integer products want weights in blocks, whose layout depends on the processor, and
// for convolutions on the shape of the images: a weight may be kept in two forms. A
// module has the plain weights: these are saved, copied and moved. The packed ones are
// made at the first product. They are freed when another weight is packed after the
// storage of the plain ones was freed. They are made again after the plain ones were
// written in place, as by load_state_dict: PyTorch counts such writes per tensor.
// Inference tensors have no count, so their weights are packed for each product.
//
// An xpu tensor reaches a CPU kernel as a new alias at each call. So the op of xpu
// names its own tensor, by WeightOwner, under which the packed weights are kept.

enum class PackedForm { onednn, pairs, pair_tiles };

// What `pack` makes of `weight`. `parameters`: all else that the result depends on.
at::Tensor packed_weight(const at::Tensor& weight, PackedForm form,
                         const std::vector<int64_t>& parameters,
                         const std::function<at::Tensor()>& pack);

// Whether packed weights are kept, or made for each product.
bool keeps_packed(const at::Tensor& weight);

// Within it, the calling thread's packed weights belong to `owner`.
class WeightOwner {
 public:
  explicit WeightOwner(const at::Tensor& owner);
  ~WeightOwner();
  WeightOwner(const WeightOwner&) = delete;
  WeightOwner& operator=(const WeightOwner&) = delete;

 private:
  const at::Tensor* const before_;
};

}  // namespace xpurt

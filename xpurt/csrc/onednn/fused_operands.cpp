#include "onednn/fused_operands.h"

#include <c10/util/accumulate.h>

namespace xpurt {

void FusedOperands::check_sizes(int64_t channels) const {
  const size_t least =
      static_cast<size_t>(c10::multiply_integers(weight_sizes)) * input.element_size();
  TORCH_CHECK_VALUE(is_packed() || weight.sizes() == weight_sizes, "the weight is ",
                    weight.sizes(), ", and its sizes are given as ",
                    at::IntArrayRef(weight_sizes));
  TORCH_CHECK_VALUE(!is_packed() || weight.nbytes() >= least, "a packed weight of ",
                    at::IntArrayRef(weight_sizes), " takes at least ", least,
                    " bytes; found ", weight.nbytes(),
                    ". A pack without elements says that no primitive takes it: pass "
                    "the weight itself");
  TORCH_CHECK_VALUE(!bias.defined() || bias.sizes() == channels, "a bias of ", channels,
                    " elements fits; found ", bias.sizes());
}

void FusedOperands::check_other(at::IntArrayRef result) const {
  TORCH_CHECK_VALUE(!other.defined() || other.sizes() == result,
                    "the tensor to add is ", other.sizes(), ", and the result ",
                    result);
}

}  // namespace xpurt

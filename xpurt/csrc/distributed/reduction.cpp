#include "distributed/reduction.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/div.h>
#include <ATen/ops/mul.h>

namespace xpurt {

using c10d::ReduceOp;

Reduction::Reduction(const ReduceOp& wanted, int ranks) : operation_(wanted) {
  if (wanted.op_ == ReduceOp::AVG) {
    operation_ = ReduceOp::SUM;
    divisor_ = ranks;
  } else if (wanted.op_ == ReduceOp::PREMUL_SUM) {
    const auto* scale =
        dynamic_cast<const c10d::PreMulSumSupplement*>(wanted.supplement_.get());
    TORCH_CHECK_VALUE(scale != nullptr,
                      "PREMUL_SUM needs a factor: make it by "
                      "torch.distributed._make_nccl_premul_sum(factor)");
    factor_ = scale->tensor_factor.defined() ? scale->tensor_factor.item()
                                             : at::Scalar(scale->double_factor);
    operation_ = ReduceOp::SUM;
  }
}

void Reduction::before(const std::vector<at::Tensor>& inputs) const {
  if (!factor_) return;
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  for (const at::Tensor& each : inputs) each.mul_(*factor_);
}

// The mean of integers is rounded towards zero, as by NCCL.
void Reduction::after(const std::vector<at::Tensor>& results) const {
  if (divisor_ == 1) return;
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  for (const at::Tensor& each : results) {
    if (c10::isIntegralType(each.scalar_type(), /*includeBool=*/true)) {
      each.div_(divisor_, "trunc");
    } else {
      each.div_(divisor_);
    }
  }
}

}  // namespace xpurt

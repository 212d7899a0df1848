// The reduction of a collective, in terms of those that every backend has.
#pragma once

#include <torch/csrc/distributed/c10d/Types.hpp>

#include <optional>
#include <vector>

namespace xpurt {

// Gloo has no AVG and no PREMUL_SUM. Both are a SUM, with a step before or after it.
class Reduction {
 public:
  Reduction(const c10d::ReduceOp& wanted, int ranks);

  // The operation that the inner backend computes.
  const c10d::ReduceOp& operation() const { return operation_; }

  // Whether the tensors that the inner backend reads are changed before.
  bool scales_inputs() const { return factor_.has_value(); }
  // `inputs`: the host forms of what is read. They are the collective's own memory.
  void before(const std::vector<at::Tensor>& inputs) const;
  // `results`: the host forms of what was written.
  void after(const std::vector<at::Tensor>& results) const;

  // Whether real and imaginary parts may be reduced by themselves.
  bool is_linear() const { return operation_.op_ == c10d::ReduceOp::SUM; }

 private:
  c10d::ReduceOp operation_;
  std::optional<at::Scalar> factor_;
  int64_t divisor_ = 1;
};

}  // namespace xpurt

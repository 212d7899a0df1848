// The direct forms of reads at indices: see Note [Direct forms].
#pragma once

#include "dispatch/unboxed/direct_form.h"

namespace xpurt {

struct DirectGather : DirectForm {
  static bool fits(const at::Tensor& self, int64_t dim, const at::Tensor& index, bool);
  static std::optional<at::Tensor> run(const at::Tensor& self, int64_t dim,
                                       const at::Tensor& index, bool);
};

struct DirectIndexSelect : DirectForm {
  static bool fits(const at::Tensor& self, int64_t dim, const at::Tensor& index);
  static std::optional<at::Tensor> run(const at::Tensor& self, int64_t dim,
                                       const at::Tensor& index);
};

// x[i] with one tensor of indices.
struct DirectIndex : DirectForm {
  using Indices = c10::List<std::optional<at::Tensor>>;
  static bool fits(const at::Tensor& self, const Indices& indices);
  static std::optional<at::Tensor> run(const at::Tensor& self, const Indices& indices);
};

}  // namespace xpurt

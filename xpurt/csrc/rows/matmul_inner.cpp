#include "rows/matmul_inner.h"

#include <iterator>
#include <map>

namespace xpurt {
namespace {

// The least ratio of the inner dimension to the number of rows of the result.
constexpr int64_t kLongInner = 4;

}  // namespace

bool is_divided_inside(const at::Tensor& a, const at::Tensor& b) {
  const auto type = a.scalar_type();
  return (type == at::kFloat || type == at::kDouble) && a.dim() == 2 && b.dim() == 2 &&
         a.size(1) >= kLongInner * a.size(0) && a.size(0) > 1 &&
         is_disjoint_along(a.sizes(), a.strides(), 1) &&
         is_disjoint_along(b.sizes(), b.strides(), 0);
}

at::Tensor add_inner_shards(const at::Tensor& a, const at::Tensor& b,
                            const ShardList& shards, const Ordinal& devices,
                            RowRun& run, const MultiplyInner& multiply) {
  // By the shard's begin: a shard that moves home replaces its partial sums.
  std::map<int64_t, at::Tensor> partial;
  run_shards(shards, devices, run, [&](const Shard& shard) {
    partial[shard.begin] =
        multiply(rows_of(a, shard, 1), rows_of(b, shard), shard.position);
  });
  at::Tensor sum = partial.begin()->second;
  for (auto each = std::next(partial.begin()); each != partial.end(); ++each) {
    sum.add_(each->second);
  }
  return sum;
}

}  // namespace xpurt

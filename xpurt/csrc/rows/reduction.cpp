// Rows that reduce a tensor along any of its dimensions.
#include <ATen/MemoryOverlap.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <bitset>

#include "op/element_type.h"
#include "op/row_call.h"
#include "program/program.h"
#include "rows/argument_roles.h"
#include "rows/launch.h"
#include "rows/run_split.h"

namespace xpurt {
namespace {

using at::Tensor;
using c10::ScalarType;
using torch::jit::Stack;

// The chunk of elements behind one partial result of a pass is bounded, for parallelism
// and for the rounding of long sums. The next pass reduces the partial results.
constexpr int64_t kInnerChunk = 1 << 16;  // most elements per sub-group
constexpr int64_t kOuterChunk = 1 << 12;  // most elements per work-item
constexpr int64_t kWantedTasks = 64;      // per pass, if there are enough elements
constexpr int64_t kSmallChunk = 1 << 12;  // a chunk of this size is not divided

struct Dim {
  int64_t size;
  int64_t in;       // stride of the input, in elements
  int64_t out = 0;  // stride of the output; 0 for a reduced dimension
};
using Dims = c10::SmallVector<Dim, 6>;

// Sorts by stride, and joins dimensions that are contiguous with each other.
void coalesce(Dims* dims) {
  std::stable_sort(dims->begin(), dims->end(),
                   [](const Dim& a, const Dim& b) { return a.in < b.in; });
  Dims joined;
  for (const Dim& each : *dims) {
    if (each.size == 1) continue;
    if (!joined.empty()) {
      Dim& last = joined.back();
      if (last.in * last.size == each.in && last.out * last.size == each.out) {
        last.size *= each.size;
        continue;
      }
    }
    joined.push_back(each);
  }
  if (joined.empty()) joined.push_back({1, 0, 0});
  *dims = std::move(joined);
}

int64_t size_of(const Dims& dims, size_t from = 0) {
  int64_t size = 1;
  for (size_t d = from; d < dims.size(); ++d) size *= dims[d].size;
  return size;
}

int64_t divide_up(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

struct ReductionRoles : ArgumentRoles {
  int self = -1, dim = -1, keepdim = -1, dtype = -1;
};

struct ReductionSpec final : RowSpec {
  explicit ReductionSpec(RowFields& fields)
      : RowSpec(fields),
        compute(take_compute_rule(fields)),
        result(take_result_rule(fields)),
        raises_on_empty(fields.take<bool>("raises_on_empty")) {}
  std::unique_ptr<RowKernel> make(const Overload& overload) const override;

  ComputeRule compute;
  ResultRule result;
  bool raises_on_empty;  // the reduction of no elements is an error
};

class ReductionCall final : public RowCall {
 public:
  ReductionCall(const ReductionSpec& spec, const ReductionRoles& roles)
      : spec_(spec), roles_(roles) {}

  bool read(const Stack& stack);
  void run(const c10::OperatorHandle&, Stack* stack, RowRun& run) override;

 private:
  bool read_dims(const c10::IValue& value);
  bool find_types(const c10::IValue* dtype);
  c10::SmallVector<int64_t, 6> shape() const;
  void reduce(const Tensor& self, const Tensor& out, size_t position) const;
  void pass(const Tensor& in, const Tensor& out, const Dims& kept, const Dims& reduced,
            int64_t inner_chunk, int64_t outer_chunk, int64_t count, char stage,
            size_t position) const;
  // Whether dimension 0 is kept: its rows are then reduced separately, on any device.
  bool keeps_rows() const { return self_->dim() > 0 && !reduced_[0]; }

  const ReductionSpec& spec_;
  const ReductionRoles& roles_;
  const Tensor* self_ = nullptr;
  const Tensor* out_ = nullptr;  // given by the caller
  std::bitset<64> reduced_;
  bool keepdim_ = false;
  ScalarType compute_ = ScalarType::Undefined;
  ScalarType result_ = ScalarType::Undefined;
};

bool ReductionCall::read_dims(const c10::IValue& value) {
  const Tensor& self = *self_;
  if (self.dim() > 64) return false;
  const auto add = [&](int64_t dim) {
    const int64_t dims = std::max<int64_t>(self.dim(), 1);
    if (dim < -dims || dim >= dims) return false;
    dim = dim < 0 ? dim + dims : dim;
    if (reduced_[dim]) return false;
    reduced_.set(dim);
    return true;
  };
  if (value.isInt()) return add(value.toInt());
  if (value.isNone()) {
    reduced_.set();
    return true;
  }
  if (!value.isIntList()) return false;
  const auto list = value.toIntList();
  if (list.empty()) {
    if (spec_.result == ResultRule::boolean) return false;  // no dimension is reduced
    reduced_.set();
    return true;
  }
  for (int64_t dim : list) {
    if (!add(dim)) return false;
  }
  return true;
}

bool ReductionCall::find_types(const c10::IValue* dtype) {
  const ScalarType self = self_->scalar_type();
  compute_ = self;
  if (spec_.result == ResultRule::boolean) {
    compute_ = ScalarType::Bool;
    result_ = self == ScalarType::Byte ? self : ScalarType::Bool;
  } else {
    if (dtype != nullptr && !dtype->isNone()) {
      compute_ = dtype->toScalarType();
    } else if (dtype != nullptr && out_ != nullptr) {
      compute_ = out_->scalar_type();
    } else if (spec_.compute == ComputeRule::widened &&
               c10::isIntegralType(self, /*includeBool=*/true)) {
      compute_ = ScalarType::Long;
    }
    result_ = compute_;
  }
  // PyTorch's kernel warns that it drops the imaginary part.
  const bool answers = spec_.result == ResultRule::boolean;
  if (c10::isComplexType(self) && !answers && !c10::isComplexType(compute_)) {
    return false;
  }
  return spec_.has_type(compute_);
}

bool ReductionCall::read(const Stack& stack) {
  const size_t first = stack.size() - roles_.count;
  self_ = &stack[first].toTensor();
  const Tensor& self = *self_;
  if (!self.is_xpu() || self.layout() != c10::kStrided || self.is_conj() ||
      letter_of(self.scalar_type()) == 0) {
    return false;
  }
  if (roles_.dim < 0) {
    reduced_.set();
  } else if (!read_dims(stack[first + roles_.dim])) {
    return false;
  }
  if (roles_.keepdim >= 0) keepdim_ = stack[first + roles_.keepdim].toBool();
  if (roles_.out >= 0) out_ = &stack[first + roles_.out].toTensor();
  if (!find_types(roles_.dtype >= 0 ? &stack[first + roles_.dtype] : nullptr)) {
    return false;
  }
  if (self.numel() == 0 && spec_.raises_on_empty) return false;
  if (out_ != nullptr && (!out_->is_xpu() || out_->device() != self.device() ||
                          out_->layout() != c10::kStrided || out_->is_alias_of(self) ||
                          out_->scalar_type() != result_)) {
    return false;
  }
  // PyTorch's kernels of most reductions add up what they write there.
  if (out_ != nullptr) at::assert_no_internal_overlap(*out_);
  cost_.elements = self.numel();
  cost_.flops = spec_.flops;
  cost_.read(self);
  if (keeps_rows()) cost_.rows = self.size(0);
  cost_.needs_fp64 = cost_.needs_fp64 || is_double(compute_);
  return can_run(ordinal(self.device().index()), cost_);
}

c10::SmallVector<int64_t, 6> ReductionCall::shape() const {
  c10::SmallVector<int64_t, 6> sizes;
  for (int64_t d = 0; d < self_->dim(); ++d) {
    if (!reduced_[d]) {
      sizes.push_back(self_->size(d));
    } else if (keepdim_) {
      sizes.push_back(1);
    }
  }
  return sizes;
}

// One pass over `in`. Stage 'w' (whole) reduces it to `out`; 'p' (partial) writes a
// result per chunk, in the type of the computation; 'f' (final) reduces those results.
void ReductionCall::pass(const Tensor& in, const Tensor& out, const Dims& kept,
                         const Dims& reduced, int64_t inner_chunk, int64_t outer_chunk,
                         int64_t count, char stage, size_t position) const {
  Launch launch(current_stream(in.device().index()), position);
  const int lanes = std::max(traits(launch.device()).sub_group, 1);
  const bool inner =
      reduced[0].size > 1 && (kept[0].size == 1 || reduced[0].in < kept[0].in);
  const int64_t rows = size_of(kept);
  const int64_t inner_size = reduced[0].size;
  const int64_t outer_size = size_of(reduced, 1);
  const int64_t inner_chunks = std::max<int64_t>(divide_up(inner_size, inner_chunk), 1);
  const int64_t outer_chunks = std::max<int64_t>(divide_up(outer_size, outer_chunk), 1);

  launch.tensor(out, Access::write);
  launch.tensor(in, Access::read);
  c10::SmallVector<int64_t, 32> layout{
      rows, inner_size, outer_size, inner_chunk, outer_chunk, inner_chunks, count};
  for (const Dim& d : kept) layout.push_back(d.size);
  for (const Dim& d : kept) layout.push_back(d.in);
  for (const Dim& d : kept) layout.push_back(d.out);
  for (const Dim& d : reduced) layout.push_back(d.size);
  for (const Dim& d : reduced) layout.push_back(d.in);
  launch.structure(layout.data(), layout.size() * sizeof(int64_t));

  // "row;template;stage, dimensions kept and reduced, inner stride;types"
  std::string key = std::to_string(spec_.index);
  key += inner ? ";reduce_inner;" : ";reduce_outer;";
  key += stage;
  key += std::to_string(kept.size()) + ',' + std::to_string(reduced.size());
  key += (inner ? reduced[0].in : kept[0].in) == 1 ? ",1;" : ",n;";
  key += letter_of(in.scalar_type());
  key += letter_of(out.scalar_type());
  key += letter_of(computed_in(compute_));

  const auto chunks = static_cast<size_t>(inner_chunks * outer_chunks);
  Range range;
  if (inner) {
    const auto most =
        static_cast<int64_t>(work_group_of(launch.device(), 8 * lanes)) / lanes;
    const int64_t group = std::min(rows, most) * lanes;
    range.local = {static_cast<size_t>(group), 1, 1};
    range.global = {static_cast<size_t>(divide_up(rows * lanes, group) * group), chunks,
                    1};
  } else {
    range = cover(launch.device(),
                  {static_cast<size_t>(kept[0].size),
                   static_cast<size_t>(size_of(kept, 1)), chunks},
                  64);
  }
  launch.submit(kernel_for(launch.device(), key), range);
}

void ReductionCall::reduce(const Tensor& self, const Tensor& out,
                           size_t position) const {
  Dims kept, reduced;
  int64_t out_dim = 0;
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (reduced_[d]) {
      reduced.push_back({self.size(d), self.stride(d)});
      if (keepdim_) ++out_dim;
    } else {
      kept.push_back({self.size(d), self.stride(d), out.stride(out_dim++)});
    }
  }
  coalesce(&kept);
  coalesce(&reduced);
  const int64_t rows = size_of(kept);
  const int64_t count = size_of(reduced);
  const int64_t inner_size = reduced[0].size;
  const int64_t outer_size = size_of(reduced, 1);
  const bool inner =
      inner_size > 1 && (kept[0].size == 1 || reduced[0].in < kept[0].in);

  int64_t wanted = inner ? kInnerChunk : kOuterChunk;
  const int64_t tasks = inner ? rows : divide_up(rows, 64);
  wanted = std::min(wanted, std::max(kSmallChunk, count * tasks / kWantedTasks));
  const int64_t inner_chunk = std::max<int64_t>(std::min(inner_size, wanted), 1);
  const int64_t outer_chunk =
      std::max<int64_t>(std::min(outer_size, wanted / inner_chunk), 1);
  const int64_t chunks = divide_up(std::max<int64_t>(inner_size, 1), inner_chunk) *
                         divide_up(std::max<int64_t>(outer_size, 1), outer_chunk);
  if (chunks == 1) {
    pass(self, out, kept, reduced, inner_chunk, outer_chunk, count, 'w', position);
    return;
  }
  const ScalarType partial_type = computed_in(compute_);
  const Tensor partial = at::empty({chunks, rows}, self.options().dtype(partial_type));
  pass(self, partial, kept, reduced, inner_chunk, outer_chunk, count, 'p', position);
  int64_t stride = 1;
  for (Dim& d : kept) {
    d.in = stride;
    stride *= d.size;
  }
  const Dims over_chunks{{chunks, rows}};
  pass(partial, out, kept, over_chunks, chunks, 1, count, 'f', position);
}

void ReductionCall::run(const c10::OperatorHandle&, Stack* stack, RowRun& run) {
  const auto sizes = shape();
  Tensor out;
  if (out_ != nullptr) {
    out = *out_;
    at::native::resize_output(out, sizes);
  } else {
    out = at::empty(sizes, self_->options().dtype(result_));
  }
  if (out.numel() > 0) {
    Stream& stream = current_stream(out.device().index());
    OpCost all = cost_;
    all.write(out);
    const bool apart = keeps_rows() && has_disjoint_rows(out);
    run_whole_or_split(
        shards_by_row(all, apart ? self_->size(0) : 0, stream, run), all, stream, run,
        [&](size_t position) { reduce(*self_, out, position); },
        [&](const Shard& shard) {
          reduce(rows_of(*self_, shard), rows_of(out, shard), shard.position);
        });
  }
  give_result(stack, roles_.count, std::move(out));
}

std::unique_ptr<RowKernel> ReductionSpec::make(const Overload& overload) const {
  if (!overload.returns_one_tensor()) return nullptr;
  ReductionRoles roles;
  const bool known = find_roles(overload, &roles,
                                {{"self", &roles.self},
                                 {"dim", &roles.dim},
                                 {"keepdim", &roles.keepdim},
                                 {"dtype", &roles.dtype}});
  if (!known || roles.self != 0) return nullptr;
  return make_row<ReductionCall>(prior_of(*this), *this, roles);
}

[[maybe_unused]] const bool knows_reduction = register_kind<ReductionSpec>("reduction");

}  // namespace
}  // namespace xpurt

// Rows that reduce a tensor along any of its dimensions.
#include <ATen/WrapDimUtils.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <bitset>

#include "element_type.h"
#include "launch.h"
#include "policy.h"
#include "program.h"
#include "row_spec.h"
#include "split.h"

namespace xpurt {
namespace {

using at::Tensor;
using c10::ScalarType;
using torch::jit::Stack;

// What one pass of a reduction leaves to the next: partial results are bounded in
// length, for the sake of parallelism and of the rounding of long sums.
constexpr int64_t kInnerChunk = 1 << 16;  // elements that one sub-group takes
constexpr int64_t kOuterChunk = 1 << 12;  // elements that one work-item takes
constexpr int64_t kWantedTasks = 64;      // per pass, where there is enough to do
constexpr int64_t kSmallChunk = 1 << 12;  // not worth being divided

struct Dim {
  int64_t size;
  int64_t in;       // stride of the input, in elements
  int64_t out = 0;  // stride of the output; 0 for a reduced dimension
};
using Dims = c10::SmallVector<Dim, 6>;

// Sorts by stride, and joins dimensions that are one in memory.
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

// Positions of the arguments in the schema; -1 where an overload has none.
struct ReductionRoles {
  int dim = -1, keepdim = -1, dtype = -1, out = -1;
  int count = 0;
};

struct ReductionCall {
  const Tensor* self = nullptr;
  const Tensor* out = nullptr;
  std::bitset<64> reduced;
  bool keepdim = false;
  ScalarType compute = ScalarType::Undefined;
  ScalarType result = ScalarType::Undefined;
};

class ReductionRow final : public RowKernel {
 public:
  ReductionRow(const RowSpec& spec, ReductionRoles roles)
      : RowKernel(prior_of(spec)), spec_(spec), roles_(roles) {}

  bool accepts(const Stack& stack) const override {
    ReductionCall call;
    if (!read(stack, &call)) return false;
    return can_run(ordinal(call.self->device().index()), cost(call));
  }
  OpCost cost(const Stack& stack) const override {
    ReductionCall call;
    read(stack, &call);
    return cost(call);
  }
  void run(const c10::OperatorHandle&, Stack* stack, RowRun& run) const override;
  Tier tier() const override { return Tier::sycl; }

 private:
  bool read(const Stack& stack, ReductionCall* call) const;
  bool read_dims(const c10::IValue& value, ReductionCall* call) const;
  bool find_types(const c10::IValue* dtype, ReductionCall* call) const;
  OpCost cost(const ReductionCall& call) const;
  c10::SmallVector<int64_t, 6> shape(const ReductionCall& call) const;
  void reduce(const ReductionCall& call, const Tensor& out, RowRun& run) const;
  PieceList pieces(const ReductionCall& call, const Tensor& out, RowRun& run) const;
  void pass(const Tensor& in, const Tensor& out, const Dims& kept, const Dims& reduced,
            int64_t inner_chunk, int64_t outer_chunk, int64_t count, char stage,
            ScalarType compute, size_t position) const;

  const RowSpec& spec_;
  const ReductionRoles roles_;
};

bool ReductionRow::read_dims(const c10::IValue& value, ReductionCall* call) const {
  const Tensor& self = *call->self;
  if (self.dim() > 64) return false;
  const auto add = [&](int64_t dim) {
    const int64_t dims = std::max<int64_t>(self.dim(), 1);
    if (dim < -dims || dim >= dims) return false;
    dim = dim < 0 ? dim + dims : dim;
    if (call->reduced[dim]) return false;
    call->reduced.set(dim);
    return true;
  };
  if (value.isInt()) return add(value.toInt());
  if (value.isNone()) {
    call->reduced.set();
    return true;
  }
  if (!value.isIntList()) return false;
  const auto list = value.toIntList();
  if (list.empty()) {
    if (spec_.result == ResultRule::boolean) return false;  // reduces nothing
    call->reduced.set();
    return true;
  }
  for (int64_t dim : list) {
    if (!add(dim)) return false;
  }
  return true;
}

bool ReductionRow::find_types(const c10::IValue* dtype, ReductionCall* call) const {
  const ScalarType self = call->self->scalar_type();
  call->compute = self;
  if (spec_.result == ResultRule::boolean) {
    call->compute = ScalarType::Bool;
    call->result = self == ScalarType::Byte ? self : ScalarType::Bool;
  } else {
    if (dtype != nullptr && !dtype->isNone()) {
      call->compute = dtype->toScalarType();
    } else if (dtype != nullptr && call->out != nullptr) {
      call->compute = call->out->scalar_type();
    } else if (spec_.compute == ComputeRule::widened &&
               c10::isIntegralType(self, /*includeBool=*/true)) {
      call->compute = ScalarType::Long;
    }
    call->result = call->compute;
  }
  // PyTorch says that it leaves out what is imaginary.
  const bool answers = spec_.result == ResultRule::boolean;
  if (c10::isComplexType(self) && !answers && !c10::isComplexType(call->compute)) {
    return false;
  }
  const char letter = letter_of(call->compute);
  return letter != 0 && spec_.dtypes.find(letter) != std::string::npos;
}

bool ReductionRow::read(const Stack& stack, ReductionCall* call) const {
  const size_t first = stack.size() - roles_.count;
  call->self = &stack[first].toTensor();
  const Tensor& self = *call->self;
  if (!self.is_xpu() || self.layout() != c10::kStrided || self.is_conj() ||
      letter_of(self.scalar_type()) == 0) {
    return false;
  }
  if (roles_.dim < 0) {
    call->reduced.set();
  } else if (!read_dims(stack[first + roles_.dim], call)) {
    return false;
  }
  if (roles_.keepdim >= 0) call->keepdim = stack[first + roles_.keepdim].toBool();
  if (roles_.out >= 0) call->out = &stack[first + roles_.out].toTensor();
  if (!find_types(roles_.dtype >= 0 ? &stack[first + roles_.dtype] : nullptr, call)) {
    return false;
  }
  if (self.numel() == 0 && spec_.raises_on_empty) return false;
  if (call->out == nullptr) return true;
  return call->out->is_xpu() && call->out->device() == self.device() &&
         call->out->layout() == c10::kStrided && !call->out->is_alias_of(self) &&
         call->out->scalar_type() == call->result;
}

OpCost ReductionRow::cost(const ReductionCall& call) const {
  OpCost cost;
  cost.elements = call.self->numel();
  cost.flops = spec_.flops;
  cost.read(*call.self);
  if (call.self->dim() > 0 && !call.reduced[0]) cost.rows = call.self->size(0);
  cost.needs_fp64 = cost.needs_fp64 || is_double(call.compute);
  return cost;
}

c10::SmallVector<int64_t, 6> ReductionRow::shape(const ReductionCall& call) const {
  c10::SmallVector<int64_t, 6> sizes;
  for (int64_t d = 0; d < call.self->dim(); ++d) {
    if (!call.reduced[d]) {
      sizes.push_back(call.self->size(d));
    } else if (call.keepdim) {
      sizes.push_back(1);
    }
  }
  return sizes;
}

// One pass over `in`: stage 'w' (whole) reduces it to `out`; 'p' (partial) leaves a
// result per chunk, in the type of the computation; 'f' (final) reduces those.
void ReductionRow::pass(const Tensor& in, const Tensor& out, const Dims& kept,
                        const Dims& reduced, int64_t inner_chunk, int64_t outer_chunk,
                        int64_t count, char stage, ScalarType compute,
                        size_t position) const {
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
  key += letter_of(computed_in(compute));

  const auto chunks = static_cast<size_t>(inner_chunks * outer_chunks);
  Range range;
  if (inner) {
    const int64_t group = std::min<int64_t>(rows, 8) * lanes;
    range.local = {static_cast<size_t>(group), 1, 1};
    range.global = {static_cast<size_t>(divide_up(rows * lanes, group) * group), chunks,
                    1};
  } else {
    range = cover({static_cast<size_t>(kept[0].size),
                   static_cast<size_t>(size_of(kept, 1)), chunks},
                  64);
  }
  launch.submit(kernel_for(launch.device(), key), range);
}

void ReductionRow::reduce(const ReductionCall& call, const Tensor& out,
                          RowRun& run) const {
  const Tensor& self = *call.self;
  Dims kept, reduced;
  int64_t out_dim = 0;
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (call.reduced[d]) {
      reduced.push_back({self.size(d), self.stride(d)});
      if (call.keepdim) ++out_dim;
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
  OpCost all = cost(call);
  all.write(out);
  const size_t position =
      choose_device(all, current_stream(self.device().index()), run);
  if (chunks == 1) {
    pass(self, out, kept, reduced, inner_chunk, outer_chunk, count, 'w', call.compute,
         position);
    return;
  }
  const ScalarType partial_type = computed_in(call.compute);
  const Tensor partial = at::empty({chunks, rows}, self.options().dtype(partial_type));
  pass(self, partial, kept, reduced, inner_chunk, outer_chunk, count, 'p', call.compute,
       position);
  int64_t stride = 1;
  for (Dim& d : kept) {
    d.in = stride;
    stride *= d.size;
  }
  const Dims over_chunks{{chunks, rows}};
  pass(partial, out, kept, over_chunks, chunks, 1, count, 'f', call.compute, position);
}

// Rows that are kept are reduced one by one, wherever.
PieceList ReductionRow::pieces(const ReductionCall& call, const Tensor& out,
                               RowRun& run) const {
  OpCost all = cost(call);
  all.write(out);
  Stream& stream = current_stream(out.device().index());
  if (call.self->dim() == 0 || call.reduced[0] || !may_split(all, stream, run) ||
      !has_rows_apart(out)) {
    return {};
  }
  return split(all, call.self->size(0), 1, stream, run);
}

void ReductionRow::run(const c10::OperatorHandle&, Stack* stack, RowRun& run) const {
  ReductionCall call;
  TORCH_INTERNAL_ASSERT(read(*stack, &call));
  const auto sizes = shape(call);
  Tensor out;
  if (call.out != nullptr) {
    out = *call.out;
    at::native::resize_output(out, sizes);
  } else {
    out = at::empty(sizes, call.self->options().dtype(call.result));
  }
  if (out.numel() > 0) {
    const PieceList parts = pieces(call, out, run);
    if (parts.empty()) reduce(call, out, run);
    const Ordinal& devices = ordinal(out.device().index());
    run_pieces(parts, devices, run, [&](const Piece& piece) {
      const Tensor rows = rows_of(*call.self, piece);
      ReductionCall of_rows = call;
      of_rows.self = &rows;
      reduce(of_rows, rows_of(out, piece), run);
    });
  }
  torch::jit::drop(*stack, roles_.count);
  torch::jit::push(*stack, std::move(out));
}

}  // namespace

std::unique_ptr<RowKernel> make_reduction(const RowSpec& spec,
                                          const c10::FunctionSchema& schema) {
  ReductionRoles roles;
  for (const c10::Argument& argument : schema.arguments()) {
    const int at = roles.count++;
    const std::string& name = argument.name();
    if (argument.is_out()) {
      roles.out = at;
    } else if (name == "dim") {
      roles.dim = at;
    } else if (name == "keepdim") {
      roles.keepdim = at;
    } else if (name == "dtype") {
      roles.dtype = at;
    } else if (name != "self" || at != 0) {
      return nullptr;
    }
  }
  return std::make_unique<ReductionRow>(spec, roles);
}

}  // namespace xpurt

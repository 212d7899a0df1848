// Rows of the softmax family, forward and backward: each line along one dimension is
// normalized separately.
#include <ATen/MemoryOverlap.h>
#include <ATen/ops/empty_like.h>

#include "op/element_type.h"
#include "op/row_call.h"
#include "program/program.h"
#include "rows/argument_roles.h"
#include "rows/launch.h"
#include "rows/run_split.h"

namespace xpurt {
namespace {

using at::Tensor;
using torch::jit::Stack;

struct SoftmaxSpec final : RowSpec {
  using RowSpec::RowSpec;
  std::unique_ptr<RowKernel> make(const Overload& overload) const override;
};

struct SoftmaxRoles : ArgumentRoles {
  int inputs = 1;  // 2: the gradient and the forward result
  int self = -1, output = -1, dim = -1, half_to_float = -1, input_dtype = -1;
};

class SoftmaxCall final : public RowCall {
 public:
  SoftmaxCall(const SoftmaxSpec& spec, const SoftmaxRoles& roles)
      : spec_(spec), roles_(roles) {}

  bool read(const Stack& stack);
  void run(const c10::OperatorHandle&, Stack* stack, RowRun& run) override;

 private:
  void add_cost(const Tensor& self, const Tensor& other, OpCost* cost) const;
  void submit(const Tensor& out, const Tensor& self, const Tensor& other,
              size_t position) const;
  const c10::IValue& argument(const Stack& stack, int at) const {
    return stack[stack.size() - roles_.count + at];
  }

  const SoftmaxSpec& spec_;
  const SoftmaxRoles& roles_;
  int64_t dim_ = 0;  // not negative
};

bool SoftmaxCall::read(const Stack& stack) {
  const Tensor& self = argument(stack, 0).toTensor();
  if (!self.is_xpu() || self.layout() != c10::kStrided) return false;
  if (!spec_.has_type(self.scalar_type())) return false;
  for (int i = 1; i < roles_.inputs; ++i) {
    const Tensor& other = argument(stack, i).toTensor();
    if (other.sizes() != self.sizes() || other.scalar_type() != self.scalar_type() ||
        other.device() != self.device() || other.layout() != c10::kStrided) {
      return false;
    }
  }
  const int64_t dims = std::max<int64_t>(self.dim(), 1);
  dim_ = argument(stack, roles_.dim).toInt();
  if (dim_ < -dims || dim_ >= dims) return false;
  if (dim_ < 0) dim_ += dims;
  if (roles_.half_to_float >= 0 && argument(stack, roles_.half_to_float).toBool()) {
    return false;
  }
  if (roles_.input_dtype >= 0 &&
      argument(stack, roles_.input_dtype).toScalarType() != self.scalar_type()) {
    return false;
  }
  if (roles_.out >= 0) {
    const Tensor& out = argument(stack, roles_.out).toTensor();
    if (out.device() != self.device() || out.sizes() != self.sizes() ||
        out.scalar_type() != self.scalar_type() ||
        at::has_internal_overlap(out) == at::MemOverlap::Yes) {
      return false;
    }
  }
  add_cost(self, roles_.inputs == 2 ? argument(stack, 1).toTensor() : Tensor(), &cost_);
  return can_run(ordinal(self.device().index()), cost_);
}

// `other` may be undefined.
void SoftmaxCall::add_cost(const Tensor& self, const Tensor& other,
                           OpCost* cost) const {
  cost->elements = self.numel();
  cost->flops = spec_.flops;
  cost->read(self);
  if (other.defined()) cost->read(other);
  if (dim_ > 0) cost->rows = self.size(0);
}

// All tensors are contiguous; `other` may be undefined.
void SoftmaxCall::submit(const Tensor& out, const Tensor& self, const Tensor& other,
                         size_t position) const {
  const int64_t length = self.dim() == 0 ? 1 : self.size(dim_);
  int64_t inner = 1;
  for (int64_t d = dim_ + 1; d < self.dim(); ++d) inner *= self.size(d);
  const int64_t outer = self.numel() / length / inner;
  Launch launch(current_stream(self.device().index()), position);
  launch.tensor(out, Access::write);
  launch.tensor(self, Access::read);
  if (other.defined()) launch.tensor(other, Access::read);
  launch.value(outer);
  launch.value(length);
  launch.value(inner);
  const size_t lanes = std::max(traits(launch.device()).sub_group, 1);
  Range range;
  if (inner == 1) {
    range =
        cover(launch.device(), {static_cast<size_t>(outer) * lanes, 1, 1}, 8 * lanes);
  } else {
    range = cover(launch.device(),
                  {static_cast<size_t>(inner), static_cast<size_t>(outer), 1}, 64);
  }
  // "row;template;;types"
  std::string key = std::to_string(spec_.index);
  key += inner == 1 ? ";softmax_rows;;" : ";softmax_columns;;";
  key += letter_of(self.scalar_type());
  key += letter_of(computed_in(self.scalar_type()));
  launch.submit(kernel_for(launch.device(), key), range);
}

void SoftmaxCall::run(const c10::OperatorHandle&, Stack* stack, RowRun& run) {
  const Tensor self = argument(*stack, 0).toTensor().contiguous();
  const Tensor given =
      roles_.out >= 0 ? argument(*stack, roles_.out).toTensor() : Tensor();
  const bool direct = given.defined() && given.is_contiguous();
  Tensor out = direct ? given : at::empty_like(self, at::MemoryFormat::Contiguous);
  if (self.numel() > 0) {
    Tensor other;
    if (roles_.inputs == 2) other = argument(*stack, 1).toTensor().contiguous();
    Stream& stream = current_stream(self.device().index());
    OpCost all;
    add_cost(self, other, &all);
    all.write(out);
    const bool apart =
        !out.is_alias_of(self) && !(other.defined() && out.is_alias_of(other));
    run_whole_or_split(
        shards_by_row(all, apart && dim_ > 0 ? self.size(0) : 0, stream, run), all,
        stream, run, [&](size_t position) { submit(out, self, other, position); },
        [&](const Shard& shard) {
          submit(rows_of(out, shard), rows_of(self, shard),
                 other.defined() ? rows_of(other, shard) : other, shard.position);
        });
  }
  if (given.defined() && !direct) out = given.copy_(out);
  give_result(stack, roles_.count, std::move(out));
}

std::unique_ptr<RowKernel> SoftmaxSpec::make(const Overload& overload) const {
  if (!overload.returns_one_tensor()) return nullptr;
  SoftmaxRoles roles;
  const bool known = find_roles(overload, &roles,
                                {{"self", &roles.self},
                                 {"grad_output", &roles.self},
                                 {"output", &roles.output},
                                 {"dim", &roles.dim},
                                 {"half_to_float", &roles.half_to_float},
                                 {"input_dtype", &roles.input_dtype}});
  if (!known || roles.self != 0) return nullptr;
  if (roles.output == 1) roles.inputs = 2;
  return make_row<SoftmaxCall>(prior_of(*this), *this, roles);
}

[[maybe_unused]] const bool knows_softmax = register_kind<SoftmaxSpec>("softmax");

}  // namespace
}  // namespace xpurt

// Rows of the softmax family: each line along one dimension is normalized by
// itself, forward or backward.
#include <ATen/ops/empty_like.h>

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

struct Roles {
  int inputs = 1;  // 2: the gradient and the forward result
  int dim = -1, half_to_float = -1, input_dtype = -1, out = -1;
  int count = 0;
};

class SoftmaxRow final : public RowKernel {
 public:
  SoftmaxRow(const RowSpec& spec, Roles roles)
      : RowKernel(prior_of(spec)), spec_(spec), roles_(roles) {}

  bool accepts(const Stack& stack) const override;
  OpCost cost(const Stack& stack) const override {
    const Tensor& self = argument(stack, 0).toTensor();
    OpCost found = cost(self);
    const int64_t dim = argument(stack, roles_.dim).toInt();
    if (dim != 0 && dim != -self.dim()) found.rows = self.size(0);
    return found;
  }
  void run(const c10::OperatorHandle&, Stack* stack, RowRun& run) const override;
  Tier tier() const override { return Tier::sycl; }

 private:
  void submit(const Tensor& out, const Tensor& self, const Tensor& other, int64_t dim,
              size_t position) const;
  const c10::IValue& argument(const Stack& stack, int at) const {
    return stack[stack.size() - roles_.count + at];
  }
  OpCost cost(const Tensor& self) const {
    OpCost cost;
    cost.elements = self.numel();
    cost.flops = spec_.flops;
    for (int i = 0; i < roles_.inputs; ++i) cost.read(self);
    return cost;
  }

  const RowSpec& spec_;
  const Roles roles_;
};

bool SoftmaxRow::accepts(const Stack& stack) const {
  const Tensor& self = argument(stack, 0).toTensor();
  const char letter = letter_of(self.scalar_type());
  if (!self.is_xpu() || self.layout() != c10::kStrided) return false;
  if (letter == 0 || spec_.dtypes.find(letter) == std::string::npos) return false;
  for (int i = 1; i < roles_.inputs; ++i) {
    const Tensor& other = argument(stack, i).toTensor();
    if (other.sizes() != self.sizes() || other.scalar_type() != self.scalar_type() ||
        other.device() != self.device() || other.layout() != c10::kStrided) {
      return false;
    }
  }
  const int64_t dims = std::max<int64_t>(self.dim(), 1);
  const int64_t dim = argument(stack, roles_.dim).toInt();
  if (dim < -dims || dim >= dims) return false;
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
        out.scalar_type() != self.scalar_type() || !out.is_contiguous()) {
      return false;
    }
  }
  return can_run(ordinal(self.device().index()), cost(self));
}

// All of them contiguous; `other` may be undefined.
void SoftmaxRow::submit(const Tensor& out, const Tensor& self, const Tensor& other,
                        int64_t dim, size_t position) const {
  const int64_t length = self.dim() == 0 ? 1 : self.size(dim);
  int64_t inner = 1;
  for (int64_t d = dim + 1; d < self.dim(); ++d) inner *= self.size(d);
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
    range = cover({static_cast<size_t>(outer) * lanes, 1, 1}, 8 * lanes);
  } else {
    range = cover({static_cast<size_t>(inner), static_cast<size_t>(outer), 1}, 64);
  }
  // "row;template;;types"
  std::string key = std::to_string(spec_.index);
  key += inner == 1 ? ";softmax_rows;;" : ";softmax_columns;;";
  key += letter_of(self.scalar_type());
  key += letter_of(computed_in(self.scalar_type()));
  launch.submit(kernel_for(launch.device(), key), range);
}

void SoftmaxRow::run(const c10::OperatorHandle&, Stack* stack, RowRun& run) const {
  const Tensor self = argument(*stack, 0).toTensor().contiguous();
  int64_t dim = argument(*stack, roles_.dim).toInt();
  if (dim < 0) dim += std::max<int64_t>(self.dim(), 1);
  Tensor out = roles_.out >= 0 ? argument(*stack, roles_.out).toTensor()
                               : at::empty_like(self, at::MemoryFormat::Contiguous);
  if (self.numel() > 0) {
    Tensor other;
    if (roles_.inputs == 2) other = argument(*stack, 1).toTensor().contiguous();
    Stream& stream = current_stream(self.device().index());
    OpCost all = cost(self);
    all.write(out);
    PieceList pieces;
    const bool apart =
        !out.is_alias_of(self) && !(other.defined() && out.is_alias_of(other));
    if (dim > 0 && apart && may_split(all, stream, run)) {
      pieces = split(all, self.size(0), 1, stream, run);
    }
    if (pieces.empty()) submit(out, self, other, dim, choose_device(all, stream, run));
    run_pieces(pieces, stream.ordinal(), run, [&](const Piece& piece) {
      submit(rows_of(out, piece), rows_of(self, piece),
             other.defined() ? rows_of(other, piece) : other, dim, piece.position);
    });
  }
  torch::jit::drop(*stack, roles_.count);
  torch::jit::push(*stack, std::move(out));
}

}  // namespace

std::unique_ptr<RowKernel> make_softmax(const RowSpec& spec,
                                        const c10::FunctionSchema& schema) {
  Roles roles;
  for (const c10::Argument& argument : schema.arguments()) {
    const int at = roles.count++;
    const std::string& name = argument.name();
    if (argument.is_out()) {
      roles.out = at;
    } else if (name == "dim") {
      roles.dim = at;
    } else if (name == "half_to_float") {
      roles.half_to_float = at;
    } else if (name == "input_dtype") {
      roles.input_dtype = at;
    } else if (name == "output" && at == 1) {
      roles.inputs = 2;
    } else if (at != 0) {
      return nullptr;
    }
  }
  return std::make_unique<SoftmaxRow>(spec, roles);
}

}  // namespace xpurt

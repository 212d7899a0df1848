// Matrix products: by oneDNN if it supports the device and the type, else by xpurt's
// kernels.
#include <ATen/ExpandUtils.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include "onednn/matmul.h"
#include "op/element_type.h"
#include "op/row_call.h"
#include "program/program.h"
#include "rows/argument_roles.h"
#include "rows/matmul_inner.h"
#include "rows/matmul_vectors.h"
#include "rows/run_split.h"
#include "stream/capture.h"

namespace xpurt {
namespace {

using at::Tensor;
using c10::ScalarType;
using torch::jit::Stack;

// Positions of the arguments; -1 for an argument that the op does not have.
struct MatmulRoles : ArgumentRoles {
  int self = -1, beta = -1, alpha = -1, use_gelu = -1;
  int a = -1, b = -1;
  bool batched = false;
  c10::OperatorName name{"", ""};
};

// The function that is applied to the elements of a product.
enum class Activation { none, relu, gelu };

struct Product {
  const Tensor* self = nullptr;  // added to the product
  const Tensor* a = nullptr;
  const Tensor* b = nullptr;
  const Tensor* out = nullptr;
  c10::Scalar alpha = 1;
  c10::Scalar beta = 0;
  Activation activation = Activation::none;
};

// Whether `self` is added. If beta is 0 it is not even read: it may hold NaN.
bool adds(const Product& call) {
  return call.self != nullptr && !call.beta.equal(0);
}

// Products of int8 are int32.
ScalarType product_type(ScalarType type) {
  return type == ScalarType::Char ? ScalarType::Int : type;
}

struct MatmulSpec final : RowSpec {
  using RowSpec::RowSpec;
  std::unique_ptr<RowKernel> make(const Overload& overload) const override;
};

class MatmulCall final : public RowCall {
 public:
  MatmulCall(const MatmulSpec& spec, const MatmulRoles& roles)
      : spec_(spec), roles_(roles) {}

  bool read(const Stack& stack);
  void run(const c10::OperatorHandle&, Stack* stack, RowRun& run) override;

 private:
  void read_arguments(const Stack& stack);
  void read_cost();
  bool fits(const Stack& stack) const;
  c10::SmallVector<int64_t, 3> shape() const;
  void refuse_shapes(const Stack& stack) const;
  void by_onednn(const Product& call, const Tensor& out, size_t position) const;
  void by_kernel(const Product& call, const Tensor& out, size_t position) const;
  void multiply(const Product& call, const Tensor& out, size_t position);
  void multiply_rows(const Tensor& out, const Shard& shard);
  Tensor in_inner_shards(const OpCost& all, Stream& stream, RowRun& run);

  const MatmulSpec& spec_;
  const MatmulRoles& roles_;
  Product call_;
  bool inner_ = false;  // see Note [Division of the inner dimension]
};

void MatmulCall::read_arguments(const Stack& stack) {
  const size_t first = stack.size() - roles_.count;
  Product& call = call_;
  call = {};
  call.a = &stack[first + roles_.a].toTensor();
  call.b = &stack[first + roles_.b].toTensor();
  if (roles_.self >= 0) {
    call.self = &stack[first + roles_.self].toTensor();
    call.beta = 1;
  }
  if (roles_.beta >= 0) call.beta = stack[first + roles_.beta].toScalar();
  if (roles_.alpha >= 0) call.alpha = stack[first + roles_.alpha].toScalar();
  if (roles_.out >= 0) call.out = &stack[first + roles_.out].toTensor();
  if (roles_.use_gelu >= 0) {
    const bool gelu = stack[first + roles_.use_gelu].toBool();
    call.activation = gelu ? Activation::gelu : Activation::relu;
  }
}

c10::SmallVector<int64_t, 3> MatmulCall::shape() const {
  c10::SmallVector<int64_t, 3> sizes;
  if (roles_.batched) sizes.push_back(call_.a->size(0));
  sizes.push_back(call_.a->size(-2));
  sizes.push_back(call_.b->size(-1));
  return sizes;
}

void MatmulCall::read_cost() {
  cost_ = {};
  cost_.elements = call_.a->numel() * call_.b->size(-1);
  cost_.flops = spec_.flops;
  inner_ = !adds(call_) && call_.out == nullptr &&
           call_.activation == Activation::none && call_.alpha.equal(1) &&
           is_divided_inside(*call_.a, *call_.b);
  cost_.rows = call_.a->size(inner_ ? 1 : 0);
  if (inner_) {
    cost_.summed_bytes = call_.a->size(0) * call_.b->size(1) *
                         static_cast<int64_t>(call_.a->element_size());
  }
  cost_.read(*call_.a);
  if (roles_.batched || inner_) {
    cost_.read(*call_.b);
  } else {
    cost_.read_whole(*call_.b);
  }
  if (adds(call_)) cost_.read(*call_.self);
}

// Throws what PyTorch's CPU kernel throws for shapes that do not match. The kernel gets
// single numbers, expanded to the operands' sizes, so that nothing is copied.
void MatmulCall::refuse_shapes(const Stack& stack) const {
  Stack shapes(stack.end() - roles_.count, stack.end());
  for (c10::IValue& value : shapes) {
    if (!value.isTensor()) continue;
    const Tensor& tensor = value.toTensor();
    const auto options = tensor.options().device(c10::DeviceType::CPU);
    value = at::zeros({}, options).expand(tensor.sizes());
  }
  c10::Dispatcher::singleton()
      .findSchemaOrThrow(roles_.name.name.c_str(), roles_.name.overload_name.c_str())
      .callBoxed(&shapes);
}

bool MatmulCall::fits(const Stack& stack) const {
  const Product& call = call_;
  const Tensor &a = *call.a, &b = *call.b;
  const auto computed = computed_in(a.scalar_type());
  if (!converts(call.alpha, computed) || !converts(call.beta, computed)) return false;
  if (call.out != nullptr &&
      at::has_internal_overlap(*call.out) == at::MemOverlap::Yes) {
    return false;
  }
  const int64_t dims = roles_.batched ? 3 : 2;
  if (!spec_.has_type(a.scalar_type())) return false;
  for (const Tensor* each : {call.a, call.b, call.self, call.out}) {
    if (each == nullptr) continue;
    const auto type =
        each == call.out ? product_type(a.scalar_type()) : a.scalar_type();
    if (!each->is_xpu() || each->layout() != c10::kStrided ||
        each->device() != a.device() || each->scalar_type() != type) {
      return false;
    }
  }
  if (a.dim() != dims || b.dim() != dims || a.size(-1) != b.size(-2) ||
      (roles_.batched && a.size(0) != b.size(0))) {
    refuse_shapes(stack);
    return false;
  }
  const auto sizes = shape();
  if (call.self != nullptr) {
    if (!at::is_expandable_to(call.self->sizes(), sizes)) {
      refuse_shapes(stack);
      return false;
    }
    if (call.out == call.self && !call.self->sizes().equals(sizes)) return false;
  }
  if (call.out != nullptr) {
    // PyTorch warns of such shapes, so they are left to its kernel.
    if (!call.out->sizes().equals(sizes) && call.out->numel() != 0) return false;
    if (call.out->is_conj()) return false;
    if (call.out->is_alias_of(a) || call.out->is_alias_of(b)) return false;
    if (call.self != nullptr && call.out != call.self &&
        call.out->is_alias_of(*call.self) && !call.out->is_same(*call.self)) {
      return false;
    }
  }
  return true;
}

bool MatmulCall::read(const Stack& stack) {
  read_arguments(stack);
  if (!fits(stack)) return false;
  read_cost();
  return can_run(ordinal(call_.a->device().index()), cost_);
}

Tensor plain(const Tensor& tensor) {
  return has_onednn_layout(tensor) ? tensor : tensor.contiguous();
}

void MatmulCall::by_onednn(const Product& call, const Tensor& out,
                           size_t position) const {
  const Tensor a = plain(*call.a), b = plain(*call.b);
  const Tensor none;
  const bool gelu = call.activation == Activation::gelu;
  Stream& stream = current_stream(out.device().index());
  const auto alpha = call.alpha.toFloat();
  const auto beta = call.self != nullptr ? call.beta.toFloat() : 0;
  const bool per_column = beta == 1 && alpha == 1 && call.self->dim() == 1 &&
                          call.self->size(0) == out.size(-1) &&
                          call.self->stride(0) == 1;
  if (per_column) {
    onednn_multiply({out, a, b, *call.self, 1, 0, gelu}, position, stream);
  } else {
    if (beta != 0 && !out.is_same(*call.self)) out.copy_(call.self->expand_as(out));
    onednn_multiply({out, a, b, none, alpha, beta, gelu}, position, stream);
  }
  // Not oneDNN's relu, which turns NaN into 0.
  if (call.activation == Activation::relu) out.relu_();
}

void MatmulCall::by_kernel(const Product& call, const Tensor& out,
                           size_t position) const {
  Launch launch(current_stream(out.device().index()), position);
  const DeviceTraits& device = traits(launch.device());
  const auto computed =
      static_cast<int64_t>(c10::elementSize(computed_in(out.scalar_type())));
  const auto blocks = out.is_complex() ? std::nullopt : vector_blocks(device, computed);
  int64_t m = call.a->size(-2), n = call.b->size(-1);
  const int64_t k = call.a->size(-1), batch = roles_.batched ? out.size(0) : 1;
  // The kernel's vectors run across columns. If there are too few columns, or if the
  // result is column-major, the transposed operands are multiplied in reverse order.
  const bool turned = blocks && ((n < blocks->lanes && n < m) ||
                                 (out.stride(-1) != 1 && out.stride(-2) == 1));
  const Tensor *left = call.a, *right = call.b;
  int64_t row = -2, column = -1;
  if (turned) {
    std::swap(left, right);
    std::swap(m, n);
    std::swap(row, column);
  }
  const bool has_self = adds(call);
  const Tensor self = has_self ? call.self->expand_as(out) : out;
  launch.tensor(out, Access::write);
  launch.tensor(*left, Access::read);
  launch.tensor(*right, Access::read);
  if (has_self) launch.tensor(self, Access::read);
  add_scalar(launch, call.alpha, computed_in(out.scalar_type()));
  if (has_self) add_scalar(launch, call.beta, computed_in(out.scalar_type()));
  c10::SmallVector<int64_t, 20> layout{m, n, k};
  for (const Tensor* each : {&out, left, right, &self}) {
    layout.push_back(roles_.batched ? each->stride(0) : 0);
    layout.push_back(each->stride(row));
    layout.push_back(each->stride(column));
  }
  Range range;
  const int64_t items = blocks ? 0 : items_of_tile(device, computed);
  if (blocks) {
    const VectorPart part = vector_part(*blocks, device, {batch, m, n, k});
    layout.push_back(part.rows);
    layout.push_back(part.columns);
    range = part.range;
  } else {
    range = tile_range(items, {batch, m, n});
  }
  launch.structure(layout.data(), layout.size() * sizeof(int64_t));
  // "row;template;blocks;types;adds;activation"
  std::string key = std::to_string(spec_.index);
  key += blocks ? ";matmul_vectors;" + blocks->text()
                : ";matmul_tiles;" + std::to_string(items);
  key += ';';
  key += letter_of(out.scalar_type());
  key += letter_of(computed_in(out.scalar_type()));
  key += letter_of(call.a->scalar_type());
  key += has_self ? ";adds;" : ";;";
  if (call.activation == Activation::relu) key += "relu";
  if (call.activation == Activation::gelu) key += "gelu";
  launch.submit(kernel_for(launch.device(), key), range);
}

void MatmulCall::multiply(const Product& call, const Tensor& out, size_t position) {
  Stream& stream = current_stream(out.device().index());
  const PhysicalDevice& device = *stream.ordinal().devices[position];
  // oneDNN rejects matrices without elements, and an output that is not dense.
  // For captures see Note [Capture].
  const bool by_onednn_too = call.a->size(-1) > 0 && has_onednn_layout(out) &&
                             !is_capturing(stream) &&
                             onednn_multiplies(device, call.a->scalar_type());
  if (by_onednn_too) {
    by_onednn(call, out, position);
  } else {
    by_kernel(call, out, position);
  }
  tier_ = by_onednn_too ? Tier::onednn : Tier::sycl;
}

// Computes a shard: some rows of the first matrix, or some matrices of a batch.
void MatmulCall::multiply_rows(const Tensor& out, const Shard& shard) {
  const Product& call = call_;
  Product of_rows = call;
  const Tensor rows = rows_of(out, shard);
  const Tensor a = rows_of(*call.a, shard);
  Tensor b, self;
  of_rows.a = &a;
  if (roles_.batched) {
    b = rows_of(*call.b, shard);
    of_rows.b = &b;
  }
  if (call.self != nullptr && call.self->is_same(out)) {
    of_rows.self = &rows;
  } else if (call.self != nullptr && call.self->dim() == out.dim() &&
             call.self->size(0) > 1) {
    self = rows_of(*call.self, shard);
    of_rows.self = &self;
  }
  multiply(of_rows, rows, shard.position);
}

// Undefined if the call is not divided.
Tensor MatmulCall::in_inner_shards(const OpCost& all, Stream& stream, RowRun& run) {
  const ShardList shards = shards_by_row(all, all.rows, stream, run);
  if (shards.empty()) return {};
  return add_inner_shards(*call_.a, *call_.b, shards, stream.ordinal(), run,
                          [&](const Tensor& a, const Tensor& b, size_t position) {
                            const Tensor out =
                                at::empty({a.size(0), b.size(1)}, a.options());
                            Product of_shard = call_;
                            of_shard.a = &a;
                            of_shard.b = &b;
                            multiply(of_shard, out, position);
                            return out;
                          });
}

void MatmulCall::run(const c10::OperatorHandle&, Stack* stack, RowRun& run) {
  // PyTorch passes conjugate views to products without resolving them.
  bool has_conjugates = false;
  for (auto value = stack->end() - roles_.count; value != stack->end(); ++value) {
    if (!value->isTensor() || !value->toTensor().is_conj()) continue;
    *value = value->toTensor().resolve_conj();
    has_conjugates = true;
  }
  if (has_conjugates) {
    read_arguments(*stack);
    read_cost();
  }
  const auto sizes = shape();
  Tensor out;
  if (call_.out != nullptr) {
    out = *call_.out;
    at::native::resize_output(out, sizes);
  } else {
    out = at::empty(sizes,
                    call_.a->options().dtype(product_type(call_.a->scalar_type())));
  }
  if (out.numel() > 0) {
    Stream& stream = current_stream(out.device().index());
    OpCost all = cost_;
    all.write(out);
    if (Tensor sum = inner_ ? in_inner_shards(all, stream, run) : Tensor();
        sum.defined()) {
      give_result(stack, roles_.count, std::move(sum));
      return;
    }
    const bool by_rows = !inner_ && has_disjoint_rows(out);
    run_whole_or_split(
        shards_by_row(all, by_rows ? out.size(0) : 0, stream, run), all, stream, run,
        [&](size_t position) { multiply(call_, out, position); },
        [&](const Shard& shard) { multiply_rows(out, shard); });
  }
  give_result(stack, roles_.count, std::move(out));
}

std::unique_ptr<RowKernel> MatmulSpec::make(const Overload& overload) const {
  const c10::FunctionSchema& schema = overload.schema();
  if (!overload.returns_one_tensor()) return nullptr;
  MatmulRoles roles;
  roles.name = schema.operator_name();
  const bool adds = name == "addmm" || name == "baddbmm" || name == "_addmm_activation";
  const bool known = find_roles(overload, &roles,
                                {{"self", adds ? &roles.self : &roles.a},
                                 {"mat1", &roles.a},
                                 {"batch1", &roles.a},
                                 {"mat2", &roles.b},
                                 {"batch2", &roles.b},
                                 {"beta", &roles.beta},
                                 {"alpha", &roles.alpha},
                                 {"use_gelu", &roles.use_gelu}});
  if (!known || roles.a < 0 || roles.b < 0) return nullptr;
  if (adds && is_written(schema.arguments()[roles.self])) roles.out = roles.self;
  roles.batched = name == "bmm" || name == "baddbmm";
  return make_row<MatmulCall>(asked_prior(*this, kPrimitiveUs), *this,
                              std::move(roles));
}

[[maybe_unused]] const bool knows_matmul = register_kind<MatmulSpec>("matmul");

}  // namespace
}  // namespace xpurt

#include "native/wider_types.h"

#include <ATen/Functions.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/List.h>
#include <ATen/native/Resize.h>

#include <algorithm>
#include <array>
#include <unordered_map>

#include "native/alias.h"
#include "op/meta_call.h"
#include "op/stack_tensors.h"

namespace xpurt {
namespace {

using at::Tensor;
using c10::IValue;
using c10::ScalarType;
using torch::jit::Stack;

}  // namespace

// Note [Types that the CPU lacks]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// A program written for a GPU may call histc on integers or fft on complex32. Ops
// without a row run by PyTorch's CPU kernels, some of which reject these types. The
// table kernels/rows/wider_types.py lists such pairs of an op and a type, with a wider
// type that the op is computed in. The operands are converted, and the op is called on
// xpu once more, so that a row or the CPU kernel for the wider type runs it. Then the
// results are rounded. PyTorch's meta function for the given types determines the types
// of the results and rejects invalid arguments. All that happens below autograd, so
// that the derivatives are the op's own. An op that is not in the table raises the CPU
// kernel's error: types that GPUs do not support either are not added here.
//
// Each inner call is counted where it ran; the outer call is not counted again.
struct WiderTypes {
  // The wider type, by type; Undefined: the type is unchanged.
  std::array<ScalarType, static_cast<size_t>(ScalarType::NumOptions)> wide;
  std::array<bool, static_cast<size_t>(ScalarType::NumOptions)> on_cpu{};
  bool powers_of_two = false;

  ScalarType of(ScalarType type) const {
    const ScalarType found = wide[static_cast<size_t>(type)];
    return found == ScalarType::Undefined ? type : found;
  }
  bool takes(ScalarType type) const {
    return wide[static_cast<size_t>(type)] != ScalarType::Undefined;
  }
  // Whether an operand of this type makes the call run in the wider type.
  bool asks(ScalarType type, bool host_reads) const {
    return takes(type) && !(host_reads && on_cpu[static_cast<size_t>(type)]);
  }
};

namespace {

bool is_dtype(const c10::Argument& argument, const IValue& value) {
  if (!value.isInt()) return false;
  c10::TypePtr type = argument.real_type();
  if (const auto optional = type->cast<c10::OptionalType>()) {
    type = optional->getElementType();
  }
  return type->kind() == c10::TypeKind::ScalarTypeType;
}

class WiderCall {
 public:
  WiderCall(const OpRecord& record, const WiderTypes& wider, const Stack& stack)
      : record_(record),
        wider_(wider),
        schema_(record.op.schema()),
        given_(stack.end() - static_cast<int64_t>(record.arguments), stack.end()) {}

  // PyTorch's kernel refuses operands of several floating-point types.
  bool is_meant(bool host_reads) const {
    bool found = false, mixed = false;
    auto first = ScalarType::Undefined;  // floating-point type
    const auto see = [&](const Tensor& tensor) {
      if (!tensor.defined()) return;
      found |= wider_.asks(tensor.scalar_type(), host_reads);
      if (!tensor.is_floating_point()) return;
      if (first == ScalarType::Undefined) first = tensor.scalar_type();
      mixed |= tensor.scalar_type() != first;
    };
    for (size_t i = 0; i < given_.size(); ++i) {
      for_each_tensor(given_[i], see);
      found |= is_dtype(schema_.arguments()[i], given_[i]) &&
               wider_.asks(static_cast<ScalarType>(given_[i].toInt()), host_reads);
    }
    return found && !mixed;
  }

  // Runs the call, and returns the results.
  Stack run() const {
    const bool is_narrow = wider_.takes(given_[0].toTensor().scalar_type());
    if (wider_.powers_of_two && is_narrow) check_lengths();
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    Stack wide;
    for (size_t i = 0; i < given_.size(); ++i) wide.push_back(argument(i));
    const Stack arguments = wide;
    record_.op.callBoxed(wide);
    const std::vector<Tensor> meta_results = meta_call(record_.op, given_);
    for (size_t i = 0; i < given_.size(); ++i) {
      if (record_.written[i] && given_[i].isTensor()) {
        write_back(given_[i].toTensor(), arguments[i].toTensor(),
                   schema_.arguments()[i].is_out());
      }
    }
    return results(wide, meta_results);
  }

 private:
  // The length of the last dimension of a real result is an argument.
  void check_lengths() const {
    const Tensor& self = given_[0].toTensor();
    std::vector<int64_t> lengths;
    for (const int64_t dim : given_[1].toIntVector()) lengths.push_back(self.size(dim));
    if (!lengths.empty() && given_[3].isInt()) lengths.back() = given_[3].toInt();
    TORCH_CHECK(
        std::ranges::all_of(
            lengths, [](int64_t each) { return each > 0 && (each & (each - 1)) == 0; }),
        "FFT only supports dimensions whose sizes are powers of two when "
        "computing in half precision, but got a signal size of ",
        c10::IntArrayRef(lengths), ". Convert the tensor to float32.");
  }

  Tensor converted(const Tensor& tensor) const {
    if (!tensor.defined() || !wider_.takes(tensor.scalar_type())) return tensor;
    return tensor.to(wider_.of(tensor.scalar_type()));
  }

  IValue argument(size_t i) const {
    const IValue& value = given_[i];
    const c10::Argument& declared = schema_.arguments()[i];
    if (is_dtype(declared, value)) {
      return static_cast<int64_t>(wider_.of(static_cast<ScalarType>(value.toInt())));
    }
    if (value.isTensor() && value.toTensor().defined() && declared.is_out()) {
      // `out` itself is written only after all checks have passed.
      const Tensor& out = value.toTensor();
      return at::empty({0}, out.options().dtype(out_type(out.scalar_type())));
    }
    if (i == 0 && fills() && wider_.takes(value.toTensor().scalar_type())) {
      const Tensor& self = value.toTensor();
      return at::empty_like(self, self.options().dtype(wider_.of(self.scalar_type())));
    }
    if (value.isTensor()) return converted(value.toTensor());
    if (value.isTensorList()) {
      c10::List<Tensor> list;
      for (const Tensor& each : value.toTensorVector()) list.push_back(converted(each));
      return list;
    }
    return value;
  }

  // Whether the op reads nothing of the tensor that it writes.
  bool fills() const {
    return schema_.name() == "aten::zero_" || schema_.name() == "aten::fill_";
  }

  // The type of the tensor that replaces an out= of this type. If `out` has the wider
  // type, its type differs from the results' given type, which most ops reject. So the
  // replacement's type has to differ from the wider type.
  ScalarType out_type(ScalarType given) const {
    if (wider_.takes(given)) return wider_.of(given);
    // The magnitude of a complex number has the type of its parts.
    if (given == ScalarType::Half && wider_.takes(ScalarType::ComplexHalf)) {
      return ScalarType::Float;
    }
    const auto end = wider_.wide.end();
    const bool is_part =
        given == ScalarType::Float && wider_.takes(ScalarType::ComplexHalf);
    if (!is_part && std::find(wider_.wide.begin(), end, given) == end) return given;
    switch (given) {
      case ScalarType::Float:
        return ScalarType::Double;
      case ScalarType::ComplexFloat:
        return ScalarType::ComplexDouble;
      case ScalarType::Double:
        return ScalarType::Float;
      default:
        return ScalarType::Short;
    }
  }

  // Converts floating results for an integer type to int64 first: a type that is too
  // small then gets the lowest bits on every device.
  static Tensor whole(const Tensor& wide, ScalarType type) {
    const bool cut = wide.is_floating_point() && c10::isIntegralType(type, true);
    return cut ? wide.to(ScalarType::Long) : wide;
  }

  static void write_back(const Tensor& given, const Tensor& wide, bool is_out) {
    if (!wide.defined() || given.is_same(wide)) return;
    if (is_out && at::native::resize_output(given, wide.sizes())) {
      given.as_strided_(wide.sizes(), wide.strides(), given.storage_offset());
    }
    given.copy_(whole(wide, given.scalar_type()));
  }

  Stack results(const Stack& wide, const std::vector<Tensor>& meta_results) const {
    Stack made;
    for (size_t i = 0; i < wide.size(); ++i) {
      if (!wide[i].isTensor() || !wide[i].toTensor().defined()) {
        made.push_back(wide[i]);
        continue;
      }
      if (const Tensor* written = written_as(i)) {
        made.push_back(*written);
        continue;
      }
      const Tensor& result = wide[i].toTensor();
      const ScalarType type = meta_results[i].scalar_type();
      made.push_back(whole(result, type).to(type));
    }
    return made;
  }

  // The argument that is result i, as with out= and in-place ops; nullptr if none is.
  const Tensor* written_as(size_t i) const {
    const c10::Argument& result = schema_.returns()[i];
    if (result.alias_info() == nullptr || !result.alias_info()->isWrite()) {
      return nullptr;
    }
    for (size_t k = 0; k < given_.size(); ++k) {
      const auto* of_argument = schema_.arguments()[k].alias_info();
      if (of_argument != nullptr && *of_argument == *result.alias_info()) {
        return &given_[k].toTensor();
      }
    }
    return nullptr;
  }

  const OpRecord& record_;
  const WiderTypes& wider_;
  const c10::FunctionSchema& schema_;
  const Stack given_;
};

}  // namespace

void add_wider_types(const std::vector<WiderRow>& rows) {
  // Leaked: valid until the process ends, like the records.
  auto& by_name = *new std::unordered_map<std::string, WiderTypes>;
  for (const WiderRow& row : rows) {
    for (const std::string& name : {row.name, row.name + '_'}) {
      const auto [found, is_new] = by_name.try_emplace(name);
      WiderTypes& wider = found->second;
      wider.powers_of_two = row.powers_of_two;
      if (is_new) wider.wide.fill(ScalarType::Undefined);
      for (const auto& [from, to] : row.types) {
        wider.wide[static_cast<size_t>(from)] = to;
        wider.on_cpu[static_cast<size_t>(from)] = row.on_cpu;
      }
    }
  }
  auto& dispatcher = c10::Dispatcher::singleton();
  for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
    const auto found = by_name.find(name.name);
    if (found == by_name.end()) continue;
    const auto op = dispatcher.findOp(name);
    if (!op || !op->hasSchema()) continue;
    if (op->hasKernelForDispatchKey(c10::DispatchKey::CPU)) {
      op_record(*op).wider.store(&found->second, std::memory_order_release);
    }
  }
}

bool run_in_wider_type(const OpRecord& record, c10::DeviceIndex index, Stack* stack) {
  const WiderTypes* wider = record.wider.load(std::memory_order_acquire);
  if (C10_LIKELY(wider == nullptr)) return false;
  const WiderCall call(record, *wider, *stack);
  if (!call.is_meant(host_reads(index))) return false;
  Stack results = call.run();
  torch::jit::drop(*stack, record.arguments);
  for (IValue& each : results) torch::jit::push(*stack, std::move(each));
  return true;
}

}  // namespace xpurt

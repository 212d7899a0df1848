#include "lazy/kernels/c10d_forms.h"

#include <torch/csrc/distributed/c10d/GroupRegistry.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include <algorithm>
#include <numeric>
#include <string_view>
#include <unordered_map>

namespace xpurt {
namespace {

using at::Tensor;
using c10::IValue;
using Parts = CollectiveForm::Parts;
using MaybeForm = std::optional<CollectiveForm>;
using torch::jit::Stack;

// The arguments of a call by their names.
class Call {
 public:
  Call(const c10::OperatorHandle& op, const Stack& arguments)
      : op_(op), arguments_(arguments) {}

  // None if the op has no such argument.
  const IValue& operator[](const char* name) const {
    static const IValue none;
    const auto at = op_.schema().argumentIndexWithName(name);
    return at ? arguments_.at(*at) : none;
  }
  c10d::ProcessGroup& group() const {
    return *(*this)["process_group"].toCustomClass<c10d::ProcessGroup>();
  }
  int64_t ranks() const { return group().getSize(); }
  std::string group_name() const { return group().getGroupName(); }

  // As _c10d_functional names it; "" for one with a factor.
  std::string reduction() const {
    using Type = c10d::ReduceOp::RedOpType;
    static const std::unordered_map<Type, std::string> kNames{
        {Type::SUM, "sum"}, {Type::AVG, "avg"},  {Type::PRODUCT, "product"},
        {Type::MIN, "min"}, {Type::MAX, "max"},  {Type::BAND, "band"},
        {Type::BOR, "bor"}, {Type::BXOR, "bxor"}};
    const auto found =
        kNames.find((*this)["reduce_op"].toCustomClass<c10d::ReduceOp>()->op_);
    return found == kNames.end() ? "" : found->second;
  }

  // Whether the call says no more than the functional op can.
  bool is_plain() const {
    const IValue &timeout = (*this)["timeout"], &sparse = (*this)["sparse_indices"];
    if (timeout.isInt() && timeout.toInt() != c10d::kUnsetTimeout.count()) return false;
    if (sparse.isTensor() && sparse.toTensor().defined()) return false;
    if (!(*this)["reduce_op"].isNone() && reduction().empty()) return false;
    try {
      return c10d::resolve_process_group(group_name()).get() == &group();
    } catch (const std::exception&) {  // a group that has no name
      return false;
    }
  }

 private:
  const c10::OperatorHandle& op_;
  const Stack& arguments_;
};

std::vector<Parts> each_alone(const IValue& tensors) {
  if (tensors.isTensor()) return {{tensors.toTensor()}};
  std::vector<Parts> found;
  for (const Tensor& each : tensors.toTensorVector()) found.push_back({each});
  return found;
}

std::vector<Parts> lists_in(const IValue& lists) {
  std::vector<Parts> found;
  for (const IValue& each : lists.toListRef()) found.push_back(each.toTensorVector());
  return found;
}

int64_t elements_of(const Parts& parts) {
  return std::accumulate(
      parts.begin(), parts.end(), int64_t{0},
      [](int64_t sum, const Tensor& each) { return sum + each.numel(); });
}

bool have_one_size(const Parts& parts) {
  return std::ranges::all_of(
      parts, [&](const Tensor& each) { return each.numel() == parts.front().numel(); });
}

std::vector<int64_t> sizes_of(const Parts& parts) {
  std::vector<int64_t> found;
  for (const Tensor& each : parts) found.push_back(each.numel());
  return found;
}

// `large`: one for each of `small`, of as many elements as all ranks' small ones.
bool fit(const std::vector<Parts>& large, const std::vector<Parts>& small,
         int64_t ranks) {
  if (large.size() != small.size()) return false;
  for (size_t at = 0; at < large.size(); ++at) {
    if (elements_of(large[at]) != ranks * elements_of(small[at]) ||
        !have_one_size(large[at]))
      return false;
  }
  return true;
}

MaybeForm all_reduce(const Call& call) {
  const std::vector<Parts> tensors = each_alone(call["tensors"]);
  return CollectiveForm{"all_reduce",
                        {call.reduction(), call.group_name()},
                        tensors,
                        tensors,
                        /*are_lines=*/false};
}

MaybeForm broadcast(const Call& call) {
  const std::vector<Parts> tensors = each_alone(call["tensors"]);
  if (tensors.size() != 1 || call["root_tensor"].toInt() != 0) return std::nullopt;
  return CollectiveForm{"broadcast",
                        {call["root_rank"].toInt(), call.group_name()},
                        tensors,
                        tensors,
                        /*are_lines=*/false};
}

MaybeForm gather(const Call& call, std::vector<Parts> inputs,
                 std::vector<Parts> outputs) {
  if (!fit(outputs, inputs, call.ranks())) return std::nullopt;
  return CollectiveForm{"all_gather",
                        {call.ranks(), call.group_name()},
                        std::move(inputs),
                        std::move(outputs)};
}

MaybeForm scatter(const Call& call, std::vector<Parts> inputs,
                  std::vector<Parts> outputs) {
  if (!fit(inputs, outputs, call.ranks())) return std::nullopt;
  return CollectiveForm{"reduce_scatter",
                        {call.reduction(), call.ranks(), call.group_name()},
                        std::move(inputs),
                        std::move(outputs)};
}

MaybeForm exchange(const Call& call, Parts inputs, Parts outputs,
                   const std::vector<int64_t>& received,
                   const std::vector<int64_t>& sent) {
  const auto sum = [](const std::vector<int64_t>& sizes) {
    return std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
  };
  const auto ranks = static_cast<size_t>(call.ranks());
  if (received.size() != ranks || sent.size() != ranks ||
      sum(received) != elements_of(outputs) || sum(sent) != elements_of(inputs))
    return std::nullopt;
  return CollectiveForm{"all_to_all",
                        {received, sent, call.group_name()},
                        {std::move(inputs)},
                        {std::move(outputs)}};
}

// The elements for each rank: `rows` of the first dimension, or equal parts.
std::vector<int64_t> elements_for_ranks(const Tensor& tensor, std::vector<int64_t> rows,
                                        int64_t ranks) {
  if (tensor.dim() == 0) return {};
  const int64_t all = tensor.size(0);
  if (rows.empty() && all % ranks == 0)
    rows.assign(static_cast<size_t>(ranks), all / ranks);
  for (int64_t& each : rows) each *= all == 0 ? 0 : tensor.numel() / all;
  return rows;
}

using MakeForm = MaybeForm (*)(const Call& call);

const std::unordered_map<std::string_view, MakeForm> kC10dForms{
    {"c10d::allreduce_", &all_reduce},
    {"c10d::allreduce_coalesced_", &all_reduce},
    {"c10d::broadcast_", &broadcast},
    {"c10d::allgather_",
     [](const Call& call) {
       return gather(call, each_alone(call["input_tensors"]),
                     lists_in(call["output_tensors"]));
     }},
    {"c10d::_allgather_base_",
     [](const Call& call) {
       return gather(call, each_alone(call["input_tensor"]),
                     each_alone(call["output_tensor"]));
     }},
    {"c10d::allgather_into_tensor_coalesced_",
     [](const Call& call) {
       return gather(call, each_alone(call["inputs"]), each_alone(call["outputs"]));
     }},
    {"c10d::reduce_scatter_",
     [](const Call& call) {
       return scatter(call, lists_in(call["input_tensors"]),
                      each_alone(call["output_tensors"]));
     }},
    {"c10d::_reduce_scatter_base_",
     [](const Call& call) {
       return scatter(call, each_alone(call["input_tensor"]),
                      each_alone(call["output_tensor"]));
     }},
    {"c10d::reduce_scatter_tensor_coalesced_",
     [](const Call& call) {
       return scatter(call, each_alone(call["inputs"]), each_alone(call["outputs"]));
     }},
    {"c10d::alltoall_",
     [](const Call& call) {
       const Parts inputs = call["input_tensors"].toTensorVector();
       const Parts outputs = call["output_tensors"].toTensorVector();
       return exchange(call, inputs, outputs, sizes_of(outputs), sizes_of(inputs));
     }},
    {"c10d::alltoall_base_",
     [](const Call& call) {
       const Tensor input = call["input"].toTensor(),
                    output = call["output"].toTensor();
       return exchange(
           call, {input}, {output},
           elements_for_ranks(output, call["output_split_sizes"].toIntVector(),
                              call.ranks()),
           elements_for_ranks(input, call["input_split_sizes"].toIntVector(),
                              call.ranks()));
     }},
};

// Whether the results have the type of the inputs.
bool has_one_type(const CollectiveForm& form) {
  std::optional<c10::ScalarType> found;
  for (const auto* lists : {&form.inputs, &form.outputs}) {
    for (const Parts& parts : *lists) {
      for (const Tensor& each : parts) {
        if (found.value_or(each.scalar_type()) != each.scalar_type()) return false;
        found = each.scalar_type();
      }
    }
  }
  return true;
}

}  // namespace

MaybeForm form_of(const c10::OperatorHandle& op, const Stack& arguments) {
  const auto make = kC10dForms.find(op.schema().name());
  if (make == kC10dForms.end()) return std::nullopt;
  const Call call(op, arguments);
  if (!call.is_plain()) return std::nullopt;
  MaybeForm found = make->second(call);
  if (!found || found->inputs.empty() || !has_one_type(*found)) return std::nullopt;
  return found;
}

std::string name_of_group(const IValue& group) {
  return group.isString() ? group.toStringRef()
                          : group.toCustomClass<c10d::ProcessGroup>()->getGroupName();
}

}  // namespace xpurt

// Ops whose CPU kernel in PyTorch reads beyond a tensor if an index or a length is
// wrong, which may end the process, or leaves its result unset.
#include <ATen/core/Reduction.h>
#include <ATen/ops/aminmax.h>

#include <algorithm>
#include <limits>

#include "op/op_record.h"
#include "op/operands.h"

namespace xpurt {
namespace {

using at::Tensor;

void of_valid_indices(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                      torch::jit::Stack* stack) {
  const auto a = torch::jit::last(*stack, op.schema().arguments().size());
  const Tensor& weight = a[0].toTensor();
  const Tensor& indices = a[1].toTensor();
  if (indices.numel() > 0 && c10::isIntegralType(indices.scalar_type(), false)) {
    const auto [least, most] = at::aminmax(indices);
    for (const Tensor& each : {least, most}) {
      const auto index = each.item<int64_t>();
      TORCH_CHECK(index >= 0 && index < weight.size(0),
                  "embedding_bag: Expected idx >= 0 && idx < num_embeddings but "
                  "found idx to be ",
                  index);
    }
  }
  op.redispatchBoxed(keys, stack);
}

// Labels behind the end of a target do not count.
void of_valid_labels(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                     torch::jit::Stack* stack) {
  const auto a = torch::jit::last(*stack, op.schema().arguments().size());
  const int64_t classes = a[0].toTensor().size(-1);
  const Tensor labels = a[1].toTensor().to(at::kLong).contiguous();
  const int64_t* label = labels.const_data_ptr<int64_t>();
  const bool of_tensors = a[3].isTensor();
  const Tensor lengths =
      of_tensors ? a[3].toTensor().to(at::kLong).contiguous() : Tensor();
  const std::vector<int64_t> listed =
      of_tensors
          ? std::vector<int64_t>(lengths.const_data_ptr<int64_t>(),
                                 lengths.const_data_ptr<int64_t>() + lengths.numel())
          : a[3].toIntVector();
  int64_t begin = 0;
  for (size_t i = 0; i < listed.size(); ++i) {
    if (labels.dim() == 2) begin = static_cast<int64_t>(i) * labels.size(1);
    // PyTorch's kernel refuses such lengths.
    if (listed[i] < 0 || begin + listed[i] > labels.numel()) break;
    TORCH_CHECK(std::all_of(label + begin, label + begin + listed[i],
                            [&](int64_t each) { return each >= 0 && each < classes; }),
                "ctc_loss: Expected labels >= 0 && < the number of classes");
    begin += listed[i];
  }
  op.redispatchBoxed(keys, stack);
}

// PyTorch's batch_norm() checks the lengths before it calls these ops.
void of_whole_parameters(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                         torch::jit::Stack* stack) {
  const auto& arguments = op.schema().arguments();
  const auto a = torch::jit::last(*stack, arguments.size());
  const size_t first = arguments[0].name() == "grad_out" ? 1 : 0;
  const Tensor& input = a[first].toTensor();
  for (size_t at = first + 1; at < arguments.size() && !arguments[at].is_out(); ++at) {
    if (!a[at].isTensor()) continue;
    const std::string& name = arguments[at].name();
    // Those that the forward pass saved are empty in evaluation.
    if (name.starts_with("save_") && a[at].toTensor().numel() == 0) continue;
    if (name != "reserve") check_length(a[at].toTensor(), input, name);
  }
  op.redispatchBoxed(keys, stack);
}

// PyTorch's kernel leaves the result of no samples unset. Here a sum is 0 and a mean
// nan, as of other losses.
void of_samples(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                torch::jit::Stack* stack) {
  const auto& arguments = op.schema().arguments();
  const auto a = torch::jit::last(*stack, arguments.size());
  const bool is_empty = a[0].toTensor().numel() == 0;
  const int64_t reduction =
      a[op.schema().argumentIndexWithName("reduction").value()].toInt();
  op.redispatchBoxed(keys, stack);
  if (!is_empty || reduction == at::Reduction::None) return;
  const size_t results = op.schema().returns().size();
  const Tensor loss = torch::jit::peek(*stack, 0, results).toTensor();
  const bool is_mean = reduction == at::Reduction::Mean;
  loss.fill_(is_mean ? std::numeric_limits<double>::quiet_NaN() : 0);
}

const bool checks_registered = set_host_kernels(
    {{"aten::native_batch_norm", "", &of_whole_parameters},
     {"aten::native_batch_norm", "out", &of_whole_parameters},
     {"aten::_native_batch_norm_legit", "", &of_whole_parameters},
     {"aten::_native_batch_norm_legit", "out", &of_whole_parameters},
     {"aten::_native_batch_norm_legit", "no_stats", &of_whole_parameters},
     {"aten::_batch_norm_with_update", "", &of_whole_parameters},
     {"aten::native_batch_norm_backward", "", &of_whole_parameters},
     {"aten::multi_margin_loss", "", &of_samples},
     {"aten::multi_margin_loss", "out", &of_samples},
     {"aten::multilabel_margin_loss_forward", "", &of_samples},
     {"aten::multilabel_margin_loss_forward", "output", &of_samples},
     {"aten::_ctc_loss", "", &of_valid_labels},
     {"aten::_ctc_loss", "Tensor", &of_valid_labels},
     {"aten::_embedding_bag", "", &of_valid_indices},
     {"aten::_embedding_bag_forward_only", "", &of_valid_indices}});

}  // namespace
}  // namespace xpurt

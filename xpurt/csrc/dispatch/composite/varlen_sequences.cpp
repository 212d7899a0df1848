#include "dispatch/composite/varlen_sequences.h"

#include <ATen/core/grad_mode.h>

#include <ATen/Context.h>

#include <algorithm>

#include "random/generator.h"
#include "random/random.h"
#include "stream/capture.h"

namespace xpurt {
namespace {

std::vector<int64_t> on_host(const at::Tensor& tensor, const char* op,
                             const char* name) {
  const bool integral =
      tensor.scalar_type() == at::kInt || tensor.scalar_type() == at::kLong;
  TORCH_CHECK(tensor.dim() == 1 && integral, op, ": ", name,
              " is a tensor of one dimension of int32 or int64; found ",
              tensor.scalar_type(), " with ", tensor.dim(),
              " dimensions. Convert it: .to(torch.int32)");
  if (tensor.is_xpu() && is_capturing(tensor.device().index())) {
    refuse_in_capture(op, std::string(name) + " is read on the host.");
  }
  const at::Tensor host = tensor.to(at::kCPU, at::kLong).contiguous();
  const auto* values = host.const_data_ptr<int64_t>();
  return {values, values + host.numel()};
}

void check_starts(const std::vector<int64_t>& starts, int64_t rows, const char* op,
                  const char* name) {
  TORCH_CHECK(!starts.empty() && starts.front() >= 0 &&
                  std::is_sorted(starts.begin(), starts.end()) && starts.back() <= rows,
              op, ": ", name, " has positions that grow from 0 to the number of rows, ",
              rows, "; found ", starts.empty() ? 0 : starts.front(), " to ",
              starts.empty() ? 0 : starts.back(),
              ". Make it of lengths: torch.cumsum, with a 0 before it");
}

}  // namespace

std::vector<Sequence> packed_sequences(const Packing& packing, const char* op) {
  const std::vector<int64_t> starts = on_host(packing.starts_q, op, "cum_seq_q");
  check_starts(starts, packing.rows_q, op, "cum_seq_q");
  const size_t count = starts.size() - 1;
  std::vector<int64_t> keys, used;
  if (!packing.paged) {
    TORCH_CHECK(packing.starts_k.defined(), op,
                ": cum_seq_q was given without cum_seq_k. Give both, or neither");
    keys = on_host(packing.starts_k, op, "cum_seq_k");
    check_starts(keys, packing.rows_k, op, "cum_seq_k");
    TORCH_CHECK(keys.size() == starts.size(), op, ": cum_seq_q is for ", count,
                " sequences and cum_seq_k for ", keys.size() - 1,
                ". Give as many of each");
  }
  if (packing.used_keys.defined()) {
    used = on_host(packing.used_keys, op, "seqused_k");
    TORCH_CHECK(used.size() == count, op, ": seqused_k has ", used.size(),
                " lengths for ", count, " sequences. Give one for each");
  }
  std::vector<Sequence> made;
  for (size_t i = 0; i < count; ++i) {
    Sequence each{starts[i], starts[i + 1] - starts[i], 0, 0};
    if (!packing.paged) {
      each.key = keys[i];
      each.keys = keys[i + 1] - keys[i];
    }
    if (!used.empty()) {
      const int64_t most = packing.paged ? packing.rows_k : each.keys;
      TORCH_CHECK(used[i] >= 0 && used[i] <= most, op, ": sequence ", i, " has ", most,
                  " keys, and seqused_k says ", used[i],
                  ". Give at most as many as there are");
      each.keys = used[i];
    }
    made.push_back(each);
  }
  return made;
}

DropoutState DropoutState::take(c10::DeviceIndex index, int64_t draws, const char* op) {
  if (is_capturing(index)) {
    refuse_in_capture(std::string(op) + " with dropout",
                      "its backward would draw what the capture drew, not the replay.");
  }
  const PhiloxPosition position =
      state_of(default_generator(index))
          ->take(kOffsetPerOp * static_cast<uint64_t>(draws));
  return {position.seed, position.offset};
}

at::Generator DropoutState::generator(c10::DeviceIndex index) const {
  at::Generator made = make_generator(index);
  made.set_current_seed(seed);
  made.set_offset(offset);
  return made;
}

void check_dropout(double dropout, const char* op) {
  TORCH_CHECK(dropout >= 0 && dropout <= 1, op,
              ": dropout_p is a probability, from 0 to 1; found ", dropout);
}

void check_no_gradient(std::initializer_list<at::Tensor> operands, bool given,
                       const char* op, const char* arguments) {
  if (!given || !at::GradMode::is_enabled()) return;
  for (const at::Tensor& each : operands) {
    TORCH_CHECK_NOT_IMPLEMENTED(
        !each.requires_grad(), op, ": its backward is not given ", arguments,
        ", so a gradient would be wrong. Call it under torch.no_grad(), or use "
        "torch.nn.functional.scaled_dot_product_attention with a mask");
  }
}

}  // namespace xpurt

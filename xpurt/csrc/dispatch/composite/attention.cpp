// scaled_dot_product_attention: PyTorch's function chooses from a table of kernels that
// has no entry for xpu.
#include <ATen/Context.h>
#include <ATen/ExpandUtils.h>
#include <ATen/SDPBackend.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_fused_sdp_choice_ops.h>
#include <ATen/ops/_scaled_dot_product_attention_math.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>
#include <torch/library.h>

#include <algorithm>
#include <atomic>

#include "dispatch/composite/attention.h"
#include "native/alias.h"
#include "rows/attention.h"
#include "stream/capture.h"

namespace xpurt {
namespace {

using at::Tensor;

// Whether attention of tensor subclasses has to be one op. See attention.h.
std::atomic<bool> fused_is_required{false};

bool is_subclass(const Tensor& tensor) {
  return tensor.key_set().has(c10::DispatchKey::Python);
}

// Whether a compiler records the call. It makes more of products and a softmax, where
// the host does not read the memory, than of the fused op.
bool is_traced(const Tensor& tensor) {
  using c10::impl::TorchDispatchModeKey;
  const auto is_on = [](TorchDispatchModeKey mode) {
    return c10::impl::TorchDispatchModeTLS::get_mode(mode).has_value();
  };
  return is_subclass(tensor) &&
         (is_on(TorchDispatchModeKey::FAKE) || is_on(TorchDispatchModeKey::PROXY) ||
          is_on(TorchDispatchModeKey::FUNCTIONAL));
}

// Converts a boolean mask (true: the key takes part) to one that is added to the
// scores.
std::optional<Tensor> additive(const std::optional<Tensor>& mask,
                               at::ScalarType dtype) {
  if (!mask.has_value() || !mask->defined() || mask->scalar_type() != at::kBool) {
    return mask;
  }
  Tensor added = at::zeros_like(*mask, mask->options().dtype(dtype));
  added.masked_fill_(mask->logical_not(), -std::numeric_limits<double>::infinity());
  return added;
}

// Whether the row of the fused op computes this. Used in captures and for devices whose
// memory the host cannot read: PyTorch's table cannot be used there.
bool has_kernel(const Tensor& query, const Tensor& key, const Tensor& value,
                const std::optional<Tensor>& mask, double dropout) {
  if (!at::globalContext().userEnabledFlashSDP() || dropout != 0) return false;
  for (const Tensor* each : {&query, &key, &value}) {
    if (each->dim() != 4 || each->numel() == 0 ||
        each->scalar_type() != query.scalar_type() || each->size(0) != query.size(0) ||
        each->size(1) != query.size(1) || each->size(3) != query.size(3)) {
      return false;
    }
  }
  if (!at::isFloatingType(query.scalar_type()) || key.size(2) != value.size(2)) {
    return false;
  }
  if (mask.has_value()) {
    const std::array<int64_t, 4> scores{query.size(0), query.size(1), query.size(2),
                                        key.size(2)};
    if (!at::is_expandable_to(mask->sizes(), scores)) return false;
    if (mask->scalar_type() != query.scalar_type() && mask->scalar_type() != at::kFloat)
      return false;
  }
  Attention asked;
  asked.query = query;
  const auto& devices = ordinal(query.device().index()).devices;
  return std::all_of(devices.begin(), devices.end(), [&](const auto* device) {
    return attention_fits_tiles(asked, *device);
  });
}

// Whether the fused op computes the call. PyTorch's choice for CPU tensors reads sizes,
// strides and dtypes, so it is valid for xpu tensors, also for those of a compiler,
// which have no memory.
bool takes_fused(const Tensor& query, const Tensor& key, const Tensor& value,
                 const std::optional<Tensor>& mask, double dropout, bool causal,
                 std::optional<double> scale, bool grouped) {
  if (!query.is_xpu() || query.is_nested()) return false;
  if (mask.has_value() && mask->requires_grad() && at::GradMode::is_enabled()) {
    return false;
  }
  // PyTorch's kernel divides by the number of heads, and reads a value for each key.
  if (query.dim() > 2 && query.sym_size(-3) == 0) return false;
  if (key.dim() > 1 && value.dim() > 1 && key.sym_size(-2) != value.sym_size(-2)) {
    return false;
  }
  const c10::DeviceIndex index = query.device().index();
  if (!host_computes(index) || is_capturing(index)) {
    return (fused_is_required || !is_traced(query)) &&
           has_kernel(query, key, value, mask, dropout);
  }
  constexpr c10::DispatchKeySet cpu(c10::DispatchKey::CPU);
  return at::_ops::_fused_sdp_choice::redispatch(cpu, query, key, value, mask, dropout,
                                                 causal, scale, grouped) ==
         static_cast<int64_t>(at::SDPBackend::flash_attention);
}

Tensor as_batch(const Tensor& tensor) {
  Tensor made = tensor;
  while (made.dim() < 4) made = made.unsqueeze(0);
  return made;
}

// The fused op takes a batch. Since PyTorch 2.14 it is also chosen for 3 dimensions:
// those are a batch of one.
Tensor fused(const Tensor& query, const Tensor& key, const Tensor& value,
             const std::optional<Tensor>& mask, double dropout, bool causal,
             std::optional<double> scale) {
  const auto run = [&](const Tensor& q, const Tensor& k, const Tensor& v) {
    std::optional<Tensor> added = mask;
    if (mask.has_value() && mask->defined()) added = as_batch(*mask);
    const Tensor result = std::get<0>(at::_scaled_dot_product_flash_attention_for_cpu(
        as_batch(q), as_batch(k), as_batch(v), dropout, causal, added, scale));
    return query.dim() == 4 ? result : result.squeeze(0);
  };
  const Tensor q = in_rows(query), k = in_rows(key), v = in_rows(value);
  const bool as_given = q.is_same(query) && k.is_same(key) && v.is_same(value);
  // PyTorch computes other operands by products and a softmax: a contiguous result.
  return as_given ? run(q, k, v) : run(q, k, v).contiguous();
}

bool of_valid_types(const Tensor& query, const Tensor& key, const Tensor& value,
                    const std::optional<Tensor>& mask) {
  const auto type = query.scalar_type();
  if (key.scalar_type() != type || value.scalar_type() != type) return false;
  if (!mask.has_value() || !mask->defined()) return true;
  const auto of_mask = mask->scalar_type();
  return of_mask == at::kBool || of_mask == at::kFloat || of_mask == type;
}

// Throws what PyTorch throws for operands of such types. Only the types count.
void refuse_types(const Tensor& query, const Tensor& key, const Tensor& value,
                  const std::optional<Tensor>& mask) {
  const auto number = [](const Tensor& tensor) {
    return at::zeros({1, 1}, tensor.options().device(at::kCPU).layout(at::kStrided));
  };
  std::optional<Tensor> of_mask;
  if (mask.has_value() && mask->defined()) of_mask = number(*mask);
  at::scaled_dot_product_attention(number(query), number(key), number(value), of_mask);
}

// Note [A token's grouped heads]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// Of grouped heads with one query each, those of a group are as well one head with many
// queries: its keys are read once, and not once for each. A language model that writes
// a token calls attention so. Of 16 heads in 4 groups, with 128 and 2048 keys of 128
// numbers, PyTorch's kernel took 412 and 6857 us in bfloat16, and 47 and 787 so (one
// thread of an AMD EPYC of Zen 4, 2026-12-01).
bool is_token_of_groups(const Tensor& query, const Tensor& key, const Tensor& value,
                        const std::optional<Tensor>& mask, bool causal) {
  if (causal || is_subclass(query) || query.dim() != 4 || key.dim() != 4 ||
      value.dim() != 4 || query.numel() == 0 || key.numel() == 0) {
    return false;
  }
  const int64_t heads = query.size(1), groups = key.size(1);
  if (query.size(2) != 1 || groups >= heads || heads % groups != 0 ||
      value.size(1) != groups || query.size(3) != key.size(3)) {
    return false;
  }
  if (!mask.has_value() || !mask->defined()) return true;
  return mask->dim() == 4 && mask->size(2) == 1 &&
         (mask->size(1) == 1 || mask->size(1) == heads);
}

// From (batch, heads, 1, last) to (batch, groups, heads of a group, last).
Tensor of_groups(const Tensor& tensor, int64_t groups) {
  return tensor.squeeze(2).unflatten(1, {groups, -1});
}

Tensor attention(const Tensor& query, const Tensor& key, const Tensor& value,
                 const std::optional<Tensor>& mask, double dropout, bool causal,
                 std::optional<double> scale, bool grouped) {
  if (grouped && dropout == 0 && is_token_of_groups(query, key, value, mask, causal)) {
    std::optional<Tensor> of_heads = mask;
    if (mask.has_value() && mask->defined() && mask->size(1) > 1) {
      of_heads = of_groups(*mask, key.size(1));
    }
    const Tensor result = attention(of_groups(query, key.size(1)), key, value, of_heads,
                                    dropout, causal, scale, false);
    return result.flatten(1, 2).unsqueeze(2);
  }
  if (!of_valid_types(query, key, value, mask)) refuse_types(query, key, value, mask);
  const std::optional<Tensor> added = additive(mask, query.scalar_type());
  if (takes_fused(query, key, value, added, dropout, causal, scale, grouped)) {
    return fused(query, key, value, added, dropout, causal, scale);
  }
  TORCH_CHECK_NOT_IMPLEMENTED(
      !fused_is_required || !is_subclass(query),
      "context parallel attention needs the fused attention: without dropout and mask, "
      "for 4-dimensional query, key and value of one floating-point dtype with as many "
      "heads. Found query ",
      query.sizes(), ", key ", key.sizes(), ", ", query.scalar_type(), ", dropout ",
      dropout, ".");
  return std::get<0>(at::_scaled_dot_product_attention_math(
      query, key, value, added, dropout, causal, std::nullopt, scale, grouped));
}

TORCH_LIBRARY_IMPL(aten, XPU, m) {
  m.impl("scaled_dot_product_attention", TORCH_FN(attention));
}
TORCH_LIBRARY_IMPL(aten, AutogradXPU, m) {
  m.impl("scaled_dot_product_attention", TORCH_FN(attention));
}

}  // namespace

Tensor in_rows(const Tensor& tensor) {
  return tensor.sym_stride(-1) == 1 ? tensor
                                    : tensor.clone(at::MemoryFormat::Contiguous);
}

void require_fused_attention(bool required) {
  fused_is_required = required;
}

}  // namespace xpurt

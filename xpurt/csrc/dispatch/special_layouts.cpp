// Sparse, quantized and nested tensors: PyTorch's decisions that depend on the device,
// and the errors of its kernels. CPU kernels run on host tensors: see
// Note [Host tensors].
#include "dispatch/special_layouts.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/_scaled_dot_product_attention_math.h>
#include <ATen/ops/scaled_dot_product_attention_native.h>
#include <torch/library.h>

#include <string_view>

#include "dispatch/dispatch.h"

namespace xpurt {
namespace {

using at::Tensor;

// PyTorch's function chooses from a table of kernels that has no entry for xpu. For
// nested CPU tensors it chooses this one: the composite of products and a softmax.
Tensor nested_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                        const std::optional<Tensor>& mask, double dropout, bool causal,
                        std::optional<double> scale, bool grouped) {
  if (!query.is_xpu() || query.key_set().has(c10::DispatchKey::Python)) {
    return at::native::scaled_dot_product_attention(query, key, value, mask, dropout,
                                                    causal, scale, grouped);
  }
  return std::get<0>(at::_scaled_dot_product_attention_math(
      query, key, value, mask, dropout, causal, std::nullopt, scale, grouped));
}

TORCH_LIBRARY_IMPL(aten, NestedTensorXPU, m) {
  m.impl("scaled_dot_product_attention", TORCH_FN(nested_attention));
}
TORCH_LIBRARY_IMPL(aten, AutogradNestedTensor, m) {
  m.impl("scaled_dot_product_attention", TORCH_FN(nested_attention));
}

// Whether the message is that of an internal assert, or of an accessor that nested
// tensors do not have.
bool is_internal(std::string_view what) {
  return what.find("INTERNAL ASSERT FAILED") != std::string_view::npos ||
         what.find("Internal error: NestedTensorImpl") != std::string_view::npos;
}

struct SpecialLayout {
  const char* tensors;
  const char* remedy;
};

SpecialLayout layout_of(c10::DispatchKeySet keys) {
  if (keys.has(c10::DispatchKey::NestedTensor)) {
    return {"these nested tensors of layout strided",
            "Use it on the parts, tensor.unbind(), or make the tensor with "
            "layout=torch.jagged"};
  }
  if (keys.has(c10::DispatchKey::Quantized)) {
    return {"these quantized tensors", "Use it on tensor.dequantize()"};
  }
  return {"sparse tensors of this layout",
          "Use another one, as tensor.to_sparse_csr(), or tensor.to_dense()"};
}

}  // namespace

void run_special_op(OpRecord& record, c10::DispatchKeySet keys,
                    torch::jit::Stack* stack) {
  try {
    run_op(record, keys, stack);
  } catch (const c10::Error& error) {
    const std::string what = error.what_without_backtrace();
    if (!is_internal(what)) throw;
    const SpecialLayout layout = layout_of(keys);
    TORCH_CHECK_NOT_IMPLEMENTED(
        false, record.name, " does not take ", layout.tensors,
        ": PyTorch's CPU kernel, which computes it for xpu, refused them (",
        what.substr(0, what.find(" INTERNAL ASSERT FAILED")), "). ", layout.remedy);
  }
}

void let_nested_kernels_be_reached() {
  constexpr auto key = c10::DispatchKey::AutogradNestedTensor;
  if (c10::Dispatcher::singleton().hasBackendFallbackForDispatchKey(key)) return;
  static auto* const kept =
      new torch::Library(torch::Library::IMPL, "_", key, __FILE__, __LINE__);
  kept->fallback(torch::CppFunction::makeFallthrough());
}

}  // namespace xpurt

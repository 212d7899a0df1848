#include "quantized/panels.h"

#include "quantized/pair_rows.h"
#include "lanes/lines.h"

namespace xpurt {

int64_t panels_of(int64_t channels) {
  return divide_up(channels, kPairPanel);
}

std::vector<float> scale_in_panels(const at::Tensor& scale, float factor) {
  std::vector<float> found(panels_of(scale.numel()) * kPairPanel, 0.0f);
  const at::Tensor plain = scale.to(at::kFloat).contiguous();
  const float* const from = plain.const_data_ptr<float>();
  for (int64_t n = 0; n < scale.numel(); ++n) found[n] = from[n] * factor;
  return found;
}

std::vector<float> bias_in_panels(const std::optional<at::Tensor>& bias,
                                  int64_t channels) {
  if (bias.has_value() && bias->defined()) return scale_in_panels(*bias, 1);
  return std::vector<float>(panels_of(channels) * kPairPanel, 0.0f);
}

}  // namespace xpurt

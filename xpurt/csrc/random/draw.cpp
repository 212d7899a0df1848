#include "random/draw.h"

#include "random/captured_draws.h"
#include "random/generator.h"
#include "random/given_draws.h"
#include "random/random.h"
#include "stream/capture.h"

namespace xpurt {

Draw take_draw(const std::optional<at::Generator>& generator, c10::Device device) {
  // An op with other tensors is dispatched to xpu only by its generator.
  TORCH_CHECK(device.is_xpu(), "Expected a '", device.type(),
              "' device type for generator but found 'xpu'");
  const auto state = state_of(generator, device.index());
  if (C10_UNLIKELY(is_capturing(device.index()))) {
    return captured_draws.load()->take(state, kOffsetPerOp, device);
  }
  const PhiloxPosition position = position_of_draw(*state);
  return {static_cast<int64_t>(position.seed), static_cast<int64_t>(position.offset),
          std::nullopt};
}

}  // namespace xpurt

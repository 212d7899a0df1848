// The random generator of an xpu ordinal: Philox state, a seed and an offset.
#pragma once

#include <ATen/core/Generator.h>

#include <memory>
#include <optional>

#include "host/api.h"
#include "host/mutex.h"

namespace xpurt {

// The contents of a generator's state. get_state() returns them as bytes.
struct PhiloxPosition {
  uint64_t seed = c10::default_rng_seed_val;
  uint64_t offset = 0;
};

// The position of one or several generators: the generator that `graphsafe_get_state`
// returns shares it with the generator that it was taken from.
class PhiloxState {
 public:
  explicit PhiloxState(PhiloxPosition position = {}) : position_(position) {}

  PhiloxPosition position() const {
    std::lock_guard<Mutex> lock(mutex_);
    return position_;
  }
  void set_position(PhiloxPosition position) {
    std::lock_guard<Mutex> lock(mutex_);
    position_ = position;
  }
  // Returns the position, and advances the offset by `growth`.
  PhiloxPosition take(uint64_t growth) {
    std::lock_guard<Mutex> lock(mutex_);
    const PhiloxPosition before = position_;
    position_.offset += growth;
    return before;
  }

 private:
  mutable Mutex mutex_{Rank::philox_state};
  PhiloxPosition position_;
};

// The state of an xpu generator. Throws for a generator of another device, and for a
// generator of a mapping that has been replaced.
std::shared_ptr<PhiloxState> state_of(const at::Generator& generator);
// The same; without a generator, the state of the default generator of xpu:index.
XPURT_API std::shared_ptr<PhiloxState> state_of(
    const std::optional<at::Generator>& generator, c10::DeviceIndex index);

// The default generator of xpu:index; index -1 is the current device.
const at::Generator& default_generator(c10::DeviceIndex index);

XPURT_API at::Generator make_generator(c10::DeviceIndex index);

}  // namespace xpurt

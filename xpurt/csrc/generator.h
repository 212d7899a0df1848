// The random generator of an xpu ordinal: Philox state, a seed and an offset.
#pragma once

#include <ATen/core/Generator.h>

#include <memory>
#include <mutex>
#include <optional>

namespace xpurt {

// What the state of a generator says, and what get_state() gives as bytes.
struct PhiloxPlace {
  uint64_t seed = c10::default_rng_seed_val;
  uint64_t offset = 0;
};

// Where a generator is. Generators can share one: what `graphsafe_get_state` returns
// goes on with the generator it was taken from.
class PhiloxState {
 public:
  explicit PhiloxState(PhiloxPlace place = {}) : place_(place) {}

  PhiloxPlace place() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return place_;
  }
  void set_place(PhiloxPlace place) {
    std::lock_guard<std::mutex> lock(mutex_);
    place_ = place;
  }
  // The place, from which the offset moves on by `growth`.
  PhiloxPlace take(uint64_t growth) {
    std::lock_guard<std::mutex> lock(mutex_);
    const PhiloxPlace before = place_;
    place_.offset += growth;
    return before;
  }

 private:
  mutable std::mutex mutex_;
  PhiloxPlace place_;
};

// The state of an xpu generator. Throws for a generator of another device, and for one
// of a mapping that has been replaced.
std::shared_ptr<PhiloxState> state_of(const at::Generator& generator);
// The same, or that of the default generator of xpu:index where none is given.
std::shared_ptr<PhiloxState> state_of(const std::optional<at::Generator>& generator,
                                      c10::DeviceIndex index);

// The default generator of xpu:index; index -1 is the current device.
const at::Generator& default_generator(c10::DeviceIndex index);

at::Generator make_generator(c10::DeviceIndex index);

}  // namespace xpurt

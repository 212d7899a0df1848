// Where the ops of kernels/rows/random.py take their numbers from. The other random ops
// are in random.h.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <optional>

namespace xpurt {

// Where a generator is; integers as kernels take them.
struct Draw {
  int64_t seed = 0;
  int64_t offset = 0;
  // In a capture: where a replay's seed and offset will be. `offset` is added to that.
  std::optional<at::Tensor> from;
};

// Takes the numbers of one op on `device` from `generator`, or from the device's
// default one.
Draw take_draw(const std::optional<at::Generator>& generator, c10::Device device);

}  // namespace xpurt

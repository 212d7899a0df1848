// Takes the random numbers of the ops of kernels/rows/random.py. The other random ops
// are in random.h.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <optional>

namespace xpurt {

// A generator's position, in the integer types that kernels take.
struct Draw {
  int64_t seed = 0;
  int64_t offset = 0;
  // In a capture: the memory of a replay's seed and offset. `offset` is added to the
  // offset there.
  std::optional<at::Tensor> from;
};

// Takes the numbers of one op on `device` from `generator`, or from the device's
// default generator.
Draw take_draw(const std::optional<at::Generator>& generator, c10::Device device);

}  // namespace xpurt

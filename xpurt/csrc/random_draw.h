// Where the ops of kernels/random.py take their numbers from. The other random ops are
// in random.h.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <atomic>
#include <optional>

namespace xpurt {

// Where a generator is; integers as kernels take them.
struct Draw {
  int64_t seed = 0;
  int64_t offset = 0;
  // In a capture: where a replay's seed and offset will be. `offset` is added to that.
  std::optional<at::Tensor> from;
};

// Takes numbers from a generator: its offset grows by `growth`.
Draw take_numbers(at::Generator generator, uint64_t growth);

// Takes the numbers of one op on `device` from `generator`, or from the device's
// default one.
Draw take_draw(const std::optional<at::Generator>& generator, c10::Device device,
               const char* op);

// The random numbers of a capture: they come from seed and offset of the device's
// default generator at the time of a replay. Kernels read them where the graph keeps
// them, and know their own distance from there; a replay moves the generator on.
struct CapturedDraws {
  at::Tensor from;     // seed and offset, of int64, on the device
  uint64_t taken = 0;  // what the offset grows by
};
extern std::atomic<CapturedDraws*> captured_draws;  // set by the graph alone

}  // namespace xpurt

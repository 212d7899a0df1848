// How random ops draw from an xpu generator.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/stack.h>

#include <optional>

#include "op_record.h"

namespace xpurt {

// Note [One definition of random numbers]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// Ops that have rows (kernels/random.py) compute their numbers from the generator's
// seed and offset on every device and tier: see Note [Random numbers] in
// kernels/templates/random.cl. The others (gamma and Dirichlet distributions, and ops
// of other libraries) run as PyTorch's CPU kernels, which draw from a CPU generator (a
// Mersenne twister) made for the call alone. The 624 words of the twister's state are
// 156 blocks of Philox4x32-10 with the xpu generator's seed as the key and (offset,
// block) as the counter; then the offset grows by kOffsetPerOp. So the numbers follow
// from seed and offset on every device and tier, and the CPU's own generator is left
// alone.
constexpr uint64_t kOffsetPerOp = 4;

// Where a generator is; integers as kernels take them.
struct Draw {
  int64_t seed = 0;
  int64_t offset = 0;
};

// Takes the numbers of one op on `device` from `generator`, or from the device's
// default one. Refuses while the current stream is captured: replays would repeat them.
Draw take_draw(const std::optional<at::Generator>& generator, c10::Device device,
               const char* op);

// Gives a random op, whose arguments are at the end of the stack, the CPU generator
// of its call, for as long as it lives.
class RandomDraw {
 public:
  RandomDraw(const OpRecord& record, c10::DeviceIndex index, torch::jit::Stack* stack);
  RandomDraw(const RandomDraw&) = delete;
  RandomDraw& operator=(const RandomDraw&) = delete;
};

// The CPU generator for one op that draws from `generator`, an xpu generator or
// nothing: then xpu:index's default one.
at::Generator draw_generator(const std::optional<at::Generator>& generator,
                             c10::DeviceIndex index);

}  // namespace xpurt

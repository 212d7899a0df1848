// CPU random ops that draw from an xpu generator.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/stack.h>

#include <optional>

#include "op/op_record.h"

namespace xpurt {

// Note [One definition of random numbers]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// A native random op on xpu draws from a CPU generator (a Mersenne twister) made for
// this op only. The 624 words of the twister's state are 156 blocks of Philox4x32-10,
// with the xpu generator's seed as the key and (offset, block) as the counter. Then the
// offset grows by kOffsetPerOp. So the numbers follow from seed and offset on every
// device and tier, and the CPU's own generator stays unchanged.
constexpr uint64_t kOffsetPerOp = 4;

// Sets the CPU generator of a random op's call. The op's arguments are at the end of
// the stack.
class RandomDraw {
 public:
  RandomDraw(const OpRecord& record, c10::DeviceIndex index, torch::jit::Stack* stack);
  RandomDraw(const RandomDraw&) = delete;
  RandomDraw& operator=(const RandomDraw&) = delete;
};

// The CPU generator for one op that draws from `generator`, an xpu generator, or
// without one from xpu:index's default generator.
at::Generator draw_generator(const std::optional<at::Generator>& generator,
                             c10::DeviceIndex index);

}  // namespace xpurt

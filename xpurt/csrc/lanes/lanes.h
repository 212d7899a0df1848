// The kernels, with LANES adjacent channels in a register, of which MOST_ROWS rows of
// sums fit beside each other. Each file that includes it defines these, the
// INSTRUCTIONS that its functions are compiled for, whatever the rest is compiled for,
// and the KERNELS.
#include <array>
#include <cstdint>
#include <utility>

#include "lanes/kernels.h"

#if defined(__clang__)
#define OF_LANES __attribute__((target(INSTRUCTIONS)))
#else
#define OF_LANES \
  __attribute__((target(INSTRUCTIONS), optimize("O3", "fp-contract=fast")))
#endif
#define INLINE_OF_LANES OF_LANES __attribute__((always_inline)) inline

namespace xpurt {
namespace NAMESPACE {

constexpr int64_t kLanes = LANES;
constexpr int64_t kMostRows = MOST_ROWS;
constexpr int64_t kPanel = 2 * kLanes;
static_assert(kChannels % kLanes == 0);

using Lanes = float __attribute__((vector_size(4 * LANES)));

// The same at any address, over floats.
using LanesAnywhere =
    float __attribute__((vector_size(4 * LANES), aligned(4), may_alias));

INLINE_OF_LANES void load(Lanes& lanes, const float* from) {
  lanes = *reinterpret_cast<const LanesAnywhere*>(from);
}

INLINE_OF_LANES void store(float* to, const Lanes& lanes) {
  *reinterpret_cast<LanesAnywhere*>(to) = lanes;
}

#include "lanes/panel_lanes.h"
#include "lanes/softmax_lanes.h"
#include "lanes/bfloat16_lanes.h"
#include "lanes/tile_lanes.h"

}  // namespace NAMESPACE

const Kernels KERNELS{LANES,
                      2 * LANES,
                      PART_FLOATS,
                      LEAST_PART,
                      &NAMESPACE::transform_tile,
                      &NAMESPACE::transform_taps,
                      &NAMESPACE::multiply_panel,
                      &NAMESPACE::finish_row,
                      &NAMESPACE::weigh_row,
                      &NAMESPACE::differentiate_row,
                      &NAMESPACE::dot,
                      &NAMESPACE::transpose_panel,
                      &NAMESPACE::copy_panel,
                      &NAMESPACE::widen_row,
                      &NAMESPACE::narrow_row,
                      &NAMESPACE::scale_row,
                      &NAMESPACE::finish_tile};

}  // namespace xpurt

#undef LANES
#undef MOST_ROWS
#undef AHEAD
#undef PART_FLOATS
#undef LEAST_PART
#undef INSTRUCTIONS
#undef KERNELS
#undef NAMESPACE
#undef OF_LANES
#undef INLINE_OF_LANES

// The registration of run_op() for ops.
#pragma once

namespace xpurt {

// Registers every op that has a CPU kernel and none from xpurt. Called after the static
// registrations of this library.
void register_remaining_ops();

}  // namespace xpurt

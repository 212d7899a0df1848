// Which ops run_op is registered for.
#pragma once

namespace xpurt {

// Registers every op that has a CPU kernel and none of ours. After the static
// registrations of this library.
void register_remaining_ops();

}  // namespace xpurt

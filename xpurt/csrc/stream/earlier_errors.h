// Errors of earlier work, which the waits of a stream throw.
#pragma once

#include <cstdint>

namespace xpurt {

// How many of them the waits of this thread have thrown. Who catches any exception of a
// call, to run it otherwise, compares: an error of earlier work is not the call's, is
// thrown once, and has to reach the program.
uint64_t earlier_errors_thrown() noexcept;

}  // namespace xpurt

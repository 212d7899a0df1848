// Waits for a device: without the interpreter lock, and interruptible by Ctrl-C.
#pragma once

#include <functional>
#include <vector>

#include "host/api.h"

namespace xpurt {

// Returns when `wait` has returned, and throws what it throws. `finished` returns,
// without waiting, whether `wait` would return at once.
//
// In Python's main thread an exception of a signal handler, such as KeyboardInterrupt,
// ends the call early. `wait` then continues in another thread, so both functions must
// own what they use, or use what is never destroyed.
XPURT_API void wait_for_device(const std::function<bool()>& finished,
                               std::function<void()> wait);

// Runs all of them at the same time: the first one in the calling thread, the others in
// threads of a Worker. If the system can start no more threads, the calling thread runs
// them in sequence. They must not throw, nor wait for each other.
void run_at_once(const std::vector<std::function<void()>>& parts);

// `check` throws if a signal handler of Python raised. It is called without the lock.
void set_interrupt_check(void (*check)(), unsigned long main_thread);

}  // namespace xpurt

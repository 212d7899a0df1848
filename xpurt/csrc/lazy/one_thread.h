// One thread at a time uses PyTorch's lazy core.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

namespace xpurt {

// Note [Threads of lazy programs]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// A step of the core takes all live tensors of a device, those of other threads too,
// and changes them while these threads trace: the core has no lock for what a tensor
// holds. Two threads that traced and stepped got "Expected tensor_data to be true", or
// read nodes that were freed. So whatever traces, reads or steps holds one lock here.
// It is held while a graph runs, since the core runs it within the step. A thread waits
// for it without Python's lock, as the graph may call Python. Sizes are read without
// this lock. A tensor keeps those that it has found, so each result finds its own
// before the lock is given up.
//
// Not met: a step of another thread makes a tensor find its sizes anew, and kernels of
// functionalization read them without the lock. Of 80 threads that traced and stepped
// beside another one, about 10 still got that error, and none a wrong value (2 cores,
// 2026-11-28, 60 steps each). What remains is the lock around those kernels.
//
// Note [Errors of lazy steps]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~
// The core keeps the exception of a graph, and throws it once more at the next step.
// The caller has it already, since graphs run in the thread that steps, and a Python
// exception can be raised only once: the second throw ended the process. So the core's
// copy is dropped as the first one leaves.
class LazyCoreInUse {
 public:
  LazyCoreInUse();
  ~LazyCoreInUse();
  LazyCoreInUse(const LazyCoreInUse&) = delete;
  LazyCoreInUse& operator=(const LazyCoreInUse&) = delete;

  // Called while an exception leaves.
  void drop_kept_error() const noexcept;

 private:
  const bool is_outermost_;  // of this thread
};

template <typename Body>
auto with_lazy_core(Body body) {
  const LazyCoreInUse in_use;
  try {
    return body();
  } catch (...) {
    in_use.drop_kept_error();
    throw;
  }
}

// The results of an op find their sizes. See Note [Threads of lazy programs].
void find_sizes(const c10::OperatorHandle& op, const torch::jit::Stack& stack);

// The core's kernels get the lock. Called before kernels of xpurt take their places.
void lock_lazy_kernels();

}  // namespace xpurt

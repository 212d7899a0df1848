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
// for it without Python's lock, as the graph may call Python.
//
// Sizes are read everywhere, by autograd too, and without this lock. PyTorch's lazy
// tensors look theirs up again after each step, while the step of another thread has
// taken away what they are read from. But only an op that returns a lazy tensor changes
// its sizes. So each result finds its own before the lock is given up, and keeps them
// as an ordinary tensor does.
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

// Called with the lock. See Note [Threads of lazy programs].
void keep_sizes(const at::Tensor& lazy);
void keep_sizes_of_results(const c10::OperatorHandle& op,
                           const torch::jit::Stack& stack);

// The core's kernels get the lock. Called before kernels of xpurt take their places.
void lock_lazy_kernels();

}  // namespace xpurt

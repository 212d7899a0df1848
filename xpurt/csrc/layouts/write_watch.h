// Pointers to write by, to the storages of weights.
#pragma once

#include <ATen/core/Tensor.h>

#include <atomic>
#include <memory>

namespace xpurt {

class WriteWatch {
 public:
  // over: the block has ended in which it was on.
  enum class State { on, over, written };

  State state() const { return state_; }
  void end(State as) { state_ = as; }

 private:
  std::atomic<State> state_ = State::on;
};

// From now on it is noticed if somebody takes a pointer to write by, as through
// `weight.data`, until the outermost block of this thread ends. (Kernels may read by
// such a pointer.) nullptr if the storage can't be watched.
std::shared_ptr<const WriteWatch> watch_writes(const at::Tensor& weight);

void end_watches();

}  // namespace xpurt

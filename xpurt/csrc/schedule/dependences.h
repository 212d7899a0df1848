// The data dependences among the long ops of one stream.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>
#include <c10/util/SmallVector.h>

#include <cstdint>
#include <vector>

#include "schedule/planning/parallelism.h"

namespace xpurt {

struct OpRecord;

// Finds out which ops read what others wrote: see Note [Overlap]. Under the scheduler's
// mutex.
class Dependences {
 public:
  // Adds a call whose arguments are at the end of the stack. Returns when its results
  // are there, for add_results().
  double add_call(const OpRecord& record, const torch::jit::Stack& stack,
                  double cost_us, bool blocks);

  // Records that the results at the end of the stack are those of a call.
  void add_results(const OpRecord& record, const torch::jit::Stack& stack,
                   double end_us);

  double parallelism() const { return parallelism_.average(); }

 private:
  // Storages that are alive or were a moment ago. A weak reference keeps the object, so
  // that no other storage gets its address.
  struct Known {
    c10::weak_intrusive_ptr<c10::StorageImpl> storage;
    uint64_t number;
  };
  static constexpr size_t kKnown = 512;

  Parallelism::Operand operand_of(const at::Tensor& tensor);

  Parallelism parallelism_;
  std::vector<Known> known_;  // hashed by address; made at the first use
  uint64_t numbers_ = 0;
  uint64_t host_waits_ = 0;  // as counted at the last call
};

}  // namespace xpurt

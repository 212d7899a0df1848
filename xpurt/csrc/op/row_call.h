// One call of a row: its arguments, which are read once, and its storage.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <utility>

#include "op/op_cost.h"
#include "op/row_kernel.h"
#include "op/tier.h"

namespace xpurt {

// Note [Calls of rows]
// ~~~~~~~~~~~~~~~~~~~~
// Up to three things are needed of a call: whether the row can compute it, its cost,
// and its results. All of them depend on the arguments. So RowKernel::parse() reads the
// arguments once, into an object that provides all three. Most calls are small ops, for
// which an allocation is not negligible. So the object lives in a RowCallStorage on the
// stack of the thread. It may point into the op's stack, where the arguments stay until
// run() replaces them.
class RowCall {
 public:
  RowCall() = default;
  virtual ~RowCall() = default;
  RowCall(const RowCall&) = delete;
  RowCall& operator=(const RowCall&) = delete;

  // The cost of the call, as far as it is known before the run. Empty for a row in
  // parts (RowPrior::in_parts).
  const OpCost& cost() const { return cost_; }

  // Replaces the parsed arguments at the end of the stack by the results. May be called
  // again after it threw.
  virtual void run(const c10::OperatorHandle& op, torch::jit::Stack* stack,
                   RowRun& run) = 0;

  // The tier that computed the results in run().
  Tier tier() const { return tier_; }

 protected:
  OpCost cost_;
  Tier tier_ = Tier::sycl;
};

// Memory for one call of any row. A structure with such a member must not be
// initialized with (), which would fill the memory with zeros.
class RowCallStorage {
 public:
  RowCallStorage() {}
  ~RowCallStorage() { reset(); }
  RowCallStorage(const RowCallStorage&) = delete;
  RowCallStorage& operator=(const RowCallStorage&) = delete;

  template <typename Call, typename... Args>
  Call* emplace(Args&&... args) {
    static_assert(sizeof(Call) <= kBytes && alignof(Call) <= kAlignment);
    reset();
    auto* call = new (bytes_) Call(std::forward<Args>(args)...);
    call_ = call;
    return call;
  }

  // Returns the call. If the row does not accept it, destroys it and returns nullptr.
  RowCall* keep_if(bool accepted) {
    if (!accepted) reset();
    return call_;
  }

  // Destroys the call, which releases its tensors.
  void reset() {
    if (call_ != nullptr) std::exchange(call_, nullptr)->~RowCall();
  }

 private:
  static constexpr size_t kBytes = 768, kAlignment = alignof(std::max_align_t);
  alignas(kAlignment) std::byte bytes_[kBytes];
  RowCall* call_ = nullptr;
};

// A row whose calls get its specification and the roles of the overload's arguments:
// `Call(spec, roles)`. Its `bool read(stack)` is false for a call that the row does not
// accept.
template <typename Call, typename Spec, typename Roles>
class RowOf final : public RowKernel {
 public:
  RowOf(RowPrior prior, const Spec& spec, Roles roles)
      : RowKernel(prior), spec_(spec), roles_(std::move(roles)) {}

  RowCall* parse(const torch::jit::Stack& stack,
                 RowCallStorage& memory) const override {
    return memory.keep_if(memory.emplace<Call>(spec_, roles_)->read(stack));
  }

 private:
  const Spec& spec_;
  const Roles roles_;
};

template <typename Call, typename Spec, typename Roles>
std::unique_ptr<RowKernel> make_row(RowPrior prior, const Spec& spec, Roles roles) {
  return std::make_unique<RowOf<Call, Spec, Roles>>(prior, spec, std::move(roles));
}

}  // namespace xpurt

// The arguments and results of one op on a prototype device.
#pragma once

#include <ATen/core/ivalue.h>

#include "native/exchanged_call.h"
#include "prototype/prototype_device.h"

namespace xpurt {

// See Note [Exchanged calls]: the other device is the one behind.
class RenamedCall final : public ExchangedCall {
 public:
  // `own`: the device of the results.
  RenamedCall(const PrototypeDevice& device, c10::Device own);

  // The tensor, storage, device or generator of the device behind that stands for one
  // of the prototype. Other values are returned as they are. `written`: whether the op
  // may write to it.
  c10::IValue to_behind(c10::IValue value, bool written);

  // Whether it is the storage of an argument, or of a result, on the device behind.
  bool has_behind(const c10::Storage& behind) const {
    return find_other(behind) != nullptr;
  }

  // The tensors of the device behind require gradients where their own do.
  void mark_gradients();

  // The result under the prototype's name: the argument itself, a view of it, or a new
  // tensor.
  c10::IValue to_own(c10::IValue value);

 private:
  void make_other(ExchangedStorage& storage) override;
  void write_back(ExchangedStorage& storage) override;
  void take_over(ExchangedStorage& storage) override;
  c10::Storage adopt(const c10::Storage& behind) override;
  bool is_foreign(const at::Tensor& result) const;

  const PrototypeDevice& device_;
  // Arguments that are not on the prototype.
  c10::SmallVector<at::Tensor, 2> foreign_;
};

}  // namespace xpurt

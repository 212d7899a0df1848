#include "cpu_tensors/call_class.h"

#include <ATen/core/ivalue.h>

#include <bit>

#include "cpu_tensors/device_call.h"
#include "op/op_record.h"
#include "op/stack_tensors.h"

namespace xpurt {
namespace {

class Hash {
 public:
  // The finalizer of MurmurHash3 (Appleby, 2011).
  void add(uint64_t value) {
    uint64_t x = state_ ^ (value + 0x9e3779b97f4a7c15);
    x = (x ^ (x >> 33)) * 0xff51afd7ed558ccd;
    x = (x ^ (x >> 33)) * 0xc4ceb9fe1a85ec53;
    state_ = x ^ (x >> 33);
  }
  uint64_t value() const { return state_ == 0 ? 1 : state_; }

 private:
  uint64_t state_ = 0;
};

void add_tensor(const at::Tensor& tensor, Hash* hash, CallClass* made) {
  made->accepted &= DeviceCall::accepts(tensor);
  if (!made->accepted || !tensor.defined()) return hash->add(0);
  const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  made->elements = std::max(made->elements, impl.numel());
  const bool dense = impl.is_non_overlapping_and_dense();
  hash->add(static_cast<uint64_t>(tensor.scalar_type()) << 2 |
            static_cast<uint64_t>(impl.is_contiguous()) << 1 |
            static_cast<uint64_t>(dense));
  for (const int64_t size : impl.sizes()) {
    hash->add(std::bit_width(static_cast<uint64_t>(size)));
  }
  if (impl.is_contiguous()) return;
  // The order of the dimensions, and expanded ones.
  for (const int64_t stride : impl.strides()) {
    hash->add(std::bit_width(static_cast<uint64_t>(std::max<int64_t>(stride, 0))));
  }
}

}  // namespace

CallClass class_of(const OpRecord& record, const torch::jit::Stack& stack,
                   bool with_scalars) {
  CallClass made;
  Hash hash;
  for (size_t i = stack.size() - record.arguments; i < stack.size(); ++i) {
    const c10::IValue& value = stack[i];
    if (value.isInt()) {
      hash.add(static_cast<uint64_t>(value.toInt()));
    } else if (value.isBool()) {
      hash.add(value.toBool() ? 1 : 2);
    } else if (value.isDouble()) {
      if (with_scalars) hash.add(std::bit_cast<uint64_t>(value.toDouble()));
    } else if (value.isIntList()) {
      for (const int64_t each : value.toIntVector()) {
        hash.add(static_cast<uint64_t>(each));
      }
    } else {
      made.accepted &= !value.isDevice() && !value.isGenerator();
      for_each_tensor(value, [&](const at::Tensor& t) { add_tensor(t, &hash, &made); });
    }
  }
  made.key = hash.value();
  return made;
}

}  // namespace xpurt

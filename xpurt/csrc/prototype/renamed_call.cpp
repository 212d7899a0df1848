#include "prototype/renamed_call.h"

#include <algorithm>

#include "memory/element_span.h"
#include "op/stack_tensors.h"
#include "prototype/prototype_parts.h"
#include "prototype/sycl_memory.h"

namespace xpurt {

using at::Tensor;
using c10::IValue;
using c10::Storage;

RenamedCall::RenamedCall(const PrototypeDevice& device, c10::Device own)
    : ExchangedCall(own, device.behind(own), device.to_behind()), device_(device) {}

IValue RenamedCall::to_behind(IValue value, bool written) {
  if (value.isDevice()) {
    const c10::Device device = value.toDevice();
    return device.type() == device_.type() ? device_.behind(device) : device;
  }
  if (value.isStorage()) return to_other(value.toStorage(), written);
  if (value.isGenerator()) {
    const at::Generator generator = value.toGenerator();
    return generator.device().type() == device_.type() ? generator_behind(generator)
                                                       : generator;
  }
  return with_tensors(
      std::move(value),
      [&](const Tensor& each) {
        if (each.defined() && each.device().type() != device_.type()) {
          foreign_.push_back(each);
        }
        return to_other(each, written);
      },
      /*in_place=*/false);
}

void RenamedCall::mark_gradients() {
  for (const ExchangedTensor& each : tensors_) {
    if (each.own.requires_grad()) each.other.set_requires_grad(true);
  }
}

void RenamedCall::make_other(ExchangedStorage& storage) {
  storage.begin = 0;
  storage.end = storage.own.nbytes();
  storage.other = storage_behind(device_, storage.own);
  storage.is_copy = device_.copies();
  if (storage.is_copy) bytes_copied_ += storage.other.nbytes();
}

void RenamedCall::write_back(ExchangedStorage& storage) {
  Intervals changed;
  for (const ExchangedTensor* each : written_in(storage)) {
    changed.add(element_span(*each->own.unsafeGetTensorImpl()));
  }
  if (changed.empty()) changed.add({0, storage.bytes});
  const auto* from = static_cast<const char*>(storage.data);
  auto* to = static_cast<char*>(storage.own.mutable_data());
  for (const Interval& each : changed.inside({0, storage.bytes})) {
    device_.sycl()->copy(storage.own.device().index(), to + each.begin,
                         from + each.begin, each.size());
  }
}

void RenamedCall::take_over(ExchangedStorage& storage) {
  follow(*storage.own.unsafeGetStorageImpl(), storage.other);
}

Storage RenamedCall::adopt(const Storage& behind) {
  return own_storage(behind, own_);
}

// A result that is such an argument, or a view of it, stays where it is.
bool RenamedCall::is_foreign(const Tensor& result) const {
  return std::ranges::any_of(foreign_, [&](const Tensor& each) {
    return each.is_same(result) || (each.has_storage() && result.has_storage() &&
                                    each.storage().is_alias_of(result.storage()));
  });
}

IValue RenamedCall::to_own(IValue value) {
  return with_tensors(
      std::move(value),
      [&](const Tensor& each) {
        const bool stays = each.defined() && is_foreign(each);
        return stays ? each : ExchangedCall::to_own(each);
      },
      /*in_place=*/false);
}

}  // namespace xpurt

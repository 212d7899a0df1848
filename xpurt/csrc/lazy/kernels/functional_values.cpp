#include "lazy/kernels/functional_values.h"

namespace xpurt {

namespace impl = at::functionalization::impl;

using at::FunctionalTensorWrapper;
using at::Tensor;
using c10::IValue;

bool is_lazy_wrapper(const IValue& value) {
  return value.isTensor() && value.toTensor().defined() &&
         value.toTensor().device().is_lazy() &&
         impl::isFunctionalTensor(value.toTensor());
}

FunctionalTensorWrapper& wrapper_of(const Tensor& tensor) {
  return *impl::unsafeGetFunctionalWrapper(tensor);
}

// The last view of a base needs none: the base would be a result of the graph.
Tensor traced(const Tensor& tensor) {
  if (!is_lazy_wrapper(tensor)) return tensor;
  FunctionalTensorWrapper& wrapper = wrapper_of(tensor);
  wrapper.sync_();
  if (!wrapper.isBaseTensor() && wrapper.storage().use_count() == 1)
    wrapper._unsafe_reset_storage();
  return wrapper.value();
}

void check_written(const Tensor& self, const Tensor& value) {
  TORCH_CHECK(value.sizes() == self.sizes(), "output with shape ", self.sizes(),
              " doesn't match the broadcast shape ", value.sizes());
  TORCH_CHECK(c10::canCast(value.scalar_type(), self.scalar_type()), "result type ",
              value.scalar_type(), " can't be cast to the desired output type ",
              self.scalar_type());
}

void write(const Tensor& self, const Tensor& value) {
  FunctionalTensorWrapper& wrapper = wrapper_of(self);
  wrapper.replace_(value);
  if (wrapper.storage().use_count() == 1) return wrapper._unsafe_reset_storage();
  wrapper.commit_update();
  wrapper.sync_();
}

}  // namespace xpurt

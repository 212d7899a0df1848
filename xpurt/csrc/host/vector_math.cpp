// Note [The first vector function]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// PyTorch computes exp, tanh, log and others with the vector functions of MKL, which
// initialize themselves in the first call of a process. If two threads of an op make
// that call at once, one of them may compute its part in a lower accuracy than the
// requested one: on a busy machine, in about one of a hundred processes, the op is
// wrong by up to 5e-3, once. After a first call by one thread, no such error was seen.
#include "host/vector_math.h"

#include <ATen/EmptyTensor.h>
#include <ATen/ops/exp_ops.h>

namespace xpurt {

void prepare_vector_math() {
  const at::Tensor zero = at::detail::empty_cpu({1}, at::kFloat);
  *zero.mutable_data_ptr<float>() = 0;
  at::_ops::exp::redispatch(c10::DispatchKeySet(c10::DispatchKey::CPU), zero);
}

}  // namespace xpurt

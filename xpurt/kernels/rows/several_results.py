"""Elementwise rows that no pointwise row can express: they have two results, or
operands of other sizes than the result."""

from xpurt.kernels.kinds.custom_kernel import CustomKernel, Step
from xpurt.kernels.kinds.decomposed import Decomposed
from xpurt.kernels.kinds.row import FLOATING_ONLY

FREXP = """
  long index[8];
  const long to = out0_unravel(i, index);
  const C x = self_load(self_at(index));
  // Not by frexp: compilers differ in the pointers that it takes.
  const int exponent = isfinite(x) && x != 0 ? ilogb(x) + 1 : 0;
  out0_store(to, ldexp(x, -exponent));
  out1_store(out1_at(index), exponent);
"""

# The second result is the buffer that PyTorch's CPU kernel of the gradient reads.
LOG_SIGMOID = """
  long index[8];
  const long to = out0_unravel(i, index);
  const C x = self_load(self_at(index)), z = exp(-fabs(x));
  out0_store(to, (x < 0 ? x : x != x ? x : 0) - log1p(z));
  out1_store(out1_at(index), z);
"""

LOG_SIGMOID_BACKWARD = """
  long index[8];
  const long to = out_unravel(i, index);
  const C x = self_load(self_at(index)), z = exp(-fabs(x));
  out_store(to, grad_output_load(grad_output_at(index)) * (x < 0 ? 1 : z) / (1 + z));
"""

# The gate is the second half of self along dim.
GLU_BACKWARD = """
  long index[8];
  const long to = out_unravel(i, index);
  const int d = wrapped(dim, self_RANK);
  const long half_size = self_size(d) / 2;
  const bool is_gate = index[d] >= half_size;
  if (is_gate) index[d] -= half_size;
  const C value = self_load(self_at(index));
  const C g = grad_output_load(grad_output_at(index));
  index[d] += half_size;
  const C gate = sigmoid_of(self_load(self_at(index)));
  out_store(to, is_gate ? g * value * gate * (1 - gate) : g * gate);
"""


def over_self(aten: str, text: str, like: str = "") -> CustomKernel:
    return CustomKernel(
        aten, (Step(over="self", text=text),), FLOATING_ONLY, like=like, flops=30
    )


ROWS: tuple[CustomKernel | Decomposed, ...] = (
    over_self("frexp", FREXP),
    over_self("log_sigmoid_forward", LOG_SIGMOID),
    over_self("log_sigmoid_backward", LOG_SIGMOID_BACKWARD, like="self"),
    over_self("glu_backward", GLU_BACKWARD, like="self"),
    Decomposed("_prelu_kernel_backward"),
)

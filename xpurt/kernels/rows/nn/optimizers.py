"""Rows of the fused optimizers and of scaled gradients.

The ops take lists of parameters. A function loops over them, and runs one kernel per
parameter, of an op of xpurt's own.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from xpurt.kernels.kinds.custom_kernel import CustomKernel, Step
from xpurt.kernels.kinds.decomposed import Decomposed
from xpurt.kernels.kinds.row import FLOATING_ONLY

# Begins every work-item: the parameter's element and its gradient. A step that
# found_inf cancels changes nothing. The unscaled gradient is stored, as in PyTorch.
BEGIN = """
#if HAS_found_inf
  if (found_inf_load(0) != 0) return;
#endif
  long index[8];
  const long at = param_unravel(i, index), from = grad_at(index);
  C x = param_load(at), g = grad_load(from);
#if HAS_grad_scale
  g /= grad_scale_load(0);
  grad_store(from, g);
#endif
  if (maximize) g = -g;
#if HAS_rate
  const C speed = rate_load(0);
#else
  const C speed = lr;
#endif
"""

# log_beta and rest_of_beta (1 - beta) have more digits than beta of type C would give.
ADAM = """
  if (decoupled) {
    x -= speed * weight_decay * x;
  } else {
    g += weight_decay * x;
  }
  const C step_number = step_load(0);
  const C mean_before = mean_load(mean_at(index));
  const C mean_now = mean_before + rest_of_beta1 * (g - mean_before);
  const long square_place = square_at(index);
  const C square_before = square_load(square_place);
  const C square_now = square_before + rest_of_beta2 * (g * g - square_before);
  mean_store(mean_at(index), mean_now);
  square_store(square_place, square_now);
  C largest = square_now;
  if (amsgrad) {
    largest = fmax((C)most_load(most_at(index)), square_now);
    most_store(most_at(index), largest);
  }
  const C correction1 = -expm1(step_number * log_beta1);
  const C correction2 = -expm1(step_number * log_beta2);
  const C spread = sqrt(largest) / sqrt(correction2) + eps;
  param_store(at, x - speed / correction1 * mean_now / spread);
"""

SGD = """
  g += weight_decay * x;
  if (momentum != 0) {
    const long place = buffer_at(index);
    C kept = g;
    if (!is_first_step) kept = momentum * buffer_load(place) + rest_of_dampening * g;
    buffer_store(place, kept);
    g = nesterov ? g + momentum * kept : kept;
  }
  param_store(at, x - speed * g);
"""

ADAGRAD = """
  g += weight_decay * x;
  const long place = sum_at(index);
  const C sum_now = sum_load(place) + g * g;
  sum_store(place, sum_now);
  const C slowed = speed / (1 + (step_load(0) - 1) * lr_decay);
  param_store(at, x - slowed * g / (sqrt(sum_now) + eps));
"""

UNSCALE = """
  long index[8];
  const long at = gradient_unravel(i, index);
  const C g = gradient_load(at);
  if (!isfinite(g)) found_inf_store(0, 1);
  gradient_store(at, g * inv_scale_load(0));
"""

UPDATE_SCALE = """
  const C scale = out_load(0);
  if (found_inf_load(0) != 0) {
    out_store(0, scale * scale_backoff_factor);
    growth_tracker_store(0, 0);
  } else {
    const int steps = growth_tracker_load(0) + 1;
    const C grown = scale * scale_growth_factor;
    if (steps == growth_interval && isfinite(grown)) out_store(0, grown);
    growth_tracker_store(0, steps == growth_interval ? 0 : steps);
  }
"""

SCALES = "Tensor? rate=None, Tensor? grad_scale=None, Tensor? found_inf=None"


def of_a_parameter(
    name: str, text: str, state: str, numbers: str, flops: float
) -> CustomKernel:
    """An op that does one optimizer step of one parameter."""
    return CustomKernel(
        f"xpurt::{name}",
        (Step(over="param", text=BEGIN + text),),
        FLOATING_ONLY,
        flops=flops,
        schema=f"(Tensor(a!) param, Tensor(b!) grad, {state}, *, {SCALES}, float lr, "
        f"{numbers}, float weight_decay, bool maximize) -> ()",
    )


OWN = (
    of_a_parameter(
        "adam",
        ADAM,
        "Tensor(c!) mean, Tensor(d!) square, Tensor(e!) most, Tensor step",
        "float rest_of_beta1, float rest_of_beta2, float log_beta1, float log_beta2, "
        "float eps, bool amsgrad, bool decoupled",
        flops=60,
    ),
    of_a_parameter(
        "sgd",
        SGD,
        "Tensor(c!) buffer",
        "float momentum, float rest_of_dampening, bool nesterov, bool is_first_step",
        flops=8,
    ),
    of_a_parameter(
        "adagrad",
        ADAGRAD,
        "Tensor(c!) sum, Tensor step",
        "float lr_decay, float eps",
        flops=16,
    ),
    CustomKernel(
        "xpurt::unscale",
        (Step(over="gradient", text=UNSCALE),),
        FLOATING_ONLY,
        schema="(Tensor(a!) gradient, Tensor(b!) found_inf, Tensor inv_scale) -> ()",
    ),
)


def is_dense(tensor: Tensor) -> bool:
    """True if the elements are contiguous in memory, in any order of dimensions."""
    expected = 1
    for stride, size in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if size != 1 and stride != expected:
            return False
        expected *= size
    return True


def in_a_line(tensors: Sequence[Tensor]) -> Sequence[Tensor]:
    """The tensors of one parameter as vectors, if their elements have the same order in
    memory. Then one kernel serves parameters of any number of dimensions."""
    first = tensors[0]
    if is_dense(first) and all(
        t.stride() == first.stride() and t.shape == first.shape for t in tensors
    ):
        return [t.as_strided((t.numel(),), (1,)) for t in tensors]
    return tensors


def rate_of(lr: float | Tensor) -> dict[str, Any]:
    """The rate: a tensor on a device stays a tensor, all else becomes a number."""
    if isinstance(lr, Tensor) and not lr.is_cpu:
        return {"rate": lr, "lr": 0.0}
    return {"rate": None, "lr": float(lr)}


def each_parameter(*lists: Sequence[Tensor]) -> Iterator[Sequence[Tensor]]:
    for tensors in zip(*lists, strict=True):
        yield in_a_line(tensors)


def fused_adam(decoupled: bool) -> Callable[..., None]:
    """Adam (Kingma, Ba 2015), AMSGrad (Reddi and others 2018), and AdamW (Loshchilov,
    Hutter 2019) if `decoupled`."""

    def run(
        self: list[Tensor],
        grads: list[Tensor],
        exp_avgs: list[Tensor],
        exp_avg_sqs: list[Tensor],
        max_exp_avg_sqs: list[Tensor],
        state_steps: list[Tensor],
        *,
        lr: float | Tensor,
        beta1: float,
        beta2: float,
        amsgrad: bool,
        **rest: Any,
    ) -> None:
        numbers = {
            "rest_of_beta1": 1 - beta1,
            "rest_of_beta2": 1 - beta2,
            "log_beta1": math.log(beta1) if beta1 else -math.inf,
            "log_beta2": math.log(beta2) if beta2 else -math.inf,
        }
        states = [exp_avgs, exp_avg_sqs, *([max_exp_avg_sqs] if amsgrad else [])]
        lines = each_parameter(self, grads, *states)
        for tensors, step in zip(lines, state_steps, strict=True):
            param, grad, mean, square = tensors[:4]
            torch.ops.xpurt.adam(
                param,
                grad,
                mean,
                square,
                tensors[-1],  # the square again, to which nothing is written then
                step,
                **rate_of(lr),
                **numbers,
                amsgrad=amsgrad,
                decoupled=decoupled,
                **rest,
            )

    return run


def fused_sgd(
    self: list[Tensor],
    grads: list[Tensor],
    momentum_buffer_list: list[Tensor],
    *,
    lr: float | Tensor,
    momentum: float,
    dampening: float,
    **rest: Any,
) -> None:
    buffers = [momentum_buffer_list] if momentum else []
    for tensors in each_parameter(self, grads, *buffers):
        torch.ops.xpurt.sgd(
            *tensors[:2],
            tensors[-1],  # without momentum the gradient again, which is only read
            **rate_of(lr),
            momentum=momentum,
            rest_of_dampening=1 - dampening,
            **rest,
        )


def fused_adagrad(
    self: list[Tensor],
    grads: list[Tensor],
    state_sums: list[Tensor],
    state_steps: list[Tensor],
    *,
    lr: float | Tensor,
    **rest: Any,
) -> None:
    lines = each_parameter(self, grads, state_sums)
    for tensors, step in zip(lines, state_steps, strict=True):
        torch.ops.xpurt.adagrad(*tensors, step, **rate_of(lr), **rest)


def unscale(self: list[Tensor], found_inf: Tensor, inv_scale: Tensor) -> None:
    for gradient in self:
        line = in_a_line([gradient])[0]
        torch.ops.xpurt.unscale(line, found_inf, inv_scale)


ROWS: tuple[CustomKernel | Decomposed, ...] = (
    *OWN,
    Decomposed("_fused_adam_", fused_adam(decoupled=False)),
    Decomposed("_fused_adamw_", fused_adam(decoupled=True)),
    Decomposed("_fused_sgd_", fused_sgd),
    Decomposed("_fused_adagrad_", fused_adagrad),
    Decomposed("_amp_foreach_non_finite_check_and_unscale_", unscale),
    CustomKernel(
        "_amp_update_scale_",
        (Step(over="out", text=UPDATE_SCALE),),
        FLOATING_ONLY,
        begins_as="self",
        like="self",
    ),
)

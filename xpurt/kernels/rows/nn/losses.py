"""Rows of losses, forward and backward.

Losses of one number per element are decomposed into other ops. Losses over classes are
custom kernels: one work-item per sample stores its loss in `losses`, and a sub-group
adds them up.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from xpurt.kernels.kinds.custom_kernel import CustomKernel, Scratch, Step
from xpurt.kernels.kinds.decomposed import Decomposed
from xpurt.kernels.kinds.row import FLOATING_ONLY

PLUS = "static C plus(C a, C b) { return a + b; }"


# Reductions of losses, as PyTorch numbers them: 0 none, 1 mean, 2 sum.
def sum_of(samples: str, out: str) -> Step:
    """Adds up `losses`, whose number is `samples`, unless `reduction` is 0."""
    return Step(
        over=out,
        lanes=True,
        text=f"""
  long index[8];
  const long to = {out}_unravel(i, index);
  const long samples = {samples};
  C loss = 0;
  if (reduction == 0) {{
    loss = losses_load(i);
  }} else {{
    in_blocks(0, samples) {{
      C block = 0;
      for (long k = begin + lane; k < end; k += LANES) block += losses_load(k);
      loss += block;
    }}
    across(loss, plus);
    if (reduction == 1) loss /= samples;
  }}
  if (lane == 0) {out}_store(to, loss);
""",
    )


SUM_OF_LOSSES = sum_of("target_numel", out="out")

# The classes are dimension 1 of self, or its only dimension.
NEGATIVE_LOG = """
  long index[8];
  target_unravel(i, index);
  const long label = target_load(target_at(index));
  C loss = 0, share = 0;
#if self_RANK == 1
  const int d = 0;
  long from = 0;
#else
  const int d = 1;
  long from = index[0] * self_stride(0);
  for (int k = 2; k < self_RANK; ++k) from += index[k - 1] * self_stride(k);
#endif
  if (label == ignore_index) {
  } else if (label < 0 || label >= self_size(d)) {
    FAULT;
  } else {
#if HAS_weight
    share = weight_load(label);
#else
    share = 1;
#endif
    loss = -share * self_load(from + label * self_stride(d));
  }
  losses_store(i, loss);
  shares_store(i, share);
"""

# The mean is weighted; the second result is the sum of the weights.
WEIGHTED_SUM = """
  long index[8];
  const long to = out0_unravel(i, index);
  C loss = 0, share = 0;
  if (reduction == 0) {
    loss = losses_load(i);
  } else {
    in_blocks(0, target_numel) {
      C block = 0, block_share = 0;
      for (long k = begin + lane; k < end; k += LANES) {
        block += losses_load(k);
        block_share += shares_load(k);
      }
      loss += block;
      share += block_share;
    }
    across(loss, plus);
    across(share, plus);
    if (reduction == 1) loss /= share;
  }
  if (lane == 0) {
    out0_store(to, loss);
    if (i == 0) out1_store(0, share);
  }
"""

NEGATIVE_LOG_BACKWARD = """
  long index[8], sample[8];
  const long to = out_unravel(i, index);
#if self_RANK == 1
  const long place = index[0];
  sample[0] = 0;
#else
  const long place = index[1];
  sample[0] = index[0];
  for (int k = 2; k < self_RANK; ++k) sample[k - 1] = index[k];
#endif
  const long label = target_load(target_at(sample));
  C slope = 0;
  if (label == place && label != ignore_index) {
    slope = -grad_output_load(grad_output_at(sample));
#if HAS_weight
    slope *= weight_load(label);
#endif
    if (reduction == 1) slope /= total_weight_load(0);
  }
  out_store(to, slope);
"""


def negative_log(aten: str) -> CustomKernel:
    return CustomKernel(
        aten,
        (
            Step(over="target", text=NEGATIVE_LOG),
            Step(over="out0", text=WEIGHTED_SUM, lanes=True),
        ),
        FLOATING_ONLY,
        scratch=(Scratch("losses", "target"), Scratch("shares", "target")),
        functions=PLUS,
        alike=("weight",),
        contiguous=("weight",),
        types=("target=lu",),
    )


def negative_log_backward(aten: str) -> CustomKernel:
    return CustomKernel(
        aten,
        (Step(over="self", text=NEGATIVE_LOG_BACKWARD),),
        FLOATING_ONLY,
        alike=("weight",),
        contiguous=("weight",),
        types=("target=lu",),
    )


# Begins each work-item, which computes a sample: `from` is the offset of its line of
# self, `classes` their number.
SAMPLE = """
  long index[8];
  const int d = self_RANK - 1;
  const long from = self_line(i, d, index), self_step = self_stride(d);
  const long classes = self_size(d);
"""

MARGIN_OF_ONE = """
  const long label = target_load(i * target_stride(0));
  C loss = 0;
  if (label < 0 || label >= classes) {
    FAULT;
  } else {
    const C right = self_load(from + label * self_step);
    for (long k = 0; k < classes; ++k) {
      const C over = margin - right + self_load(from + k * self_step);
      if (k != label && over > 0) loss += p == 1 ? over : over * over;
    }
#if HAS_weight
    loss *= weight_load(label);
#endif
  }
  losses_store(i, loss / classes);
"""

MARGIN_OF_ONE_BACKWARD = """
  const long to = out_line(i, d, index), out_step = out_stride(d);
  const long label = target_load(i * target_stride(0));
  if (label < 0 || label >= classes) {
    FAULT;
    return;
  }
  C each = grad_output_load(grad_output_RANK == 0 ? 0 : i * grad_output_stride(0));
  each /= classes;
  if (reduction == 1) each /= target_numel;
#if HAS_weight
  each *= weight_load(label);
#endif
  const C right = self_load(from + label * self_step);
  C sum = 0;
  for (long k = 0; k < classes; ++k) {
    const C over = margin - right + self_load(from + k * self_step);
    const bool counts = k != label && over > 0;
    const C slope = !counts ? 0 : p == 1 ? each : 2 * over * each;
    sum += slope;
    out_store(to + k * out_step, slope);
  }
  out_store(to + label * out_step, -sum);
"""

# The labels of a sample end before the first -1.
MARGIN_OF_SOME = """
  const long labels = target_line(i, d, index), label_step = target_stride(d);
  const long marks = out1_line(i, d, index), mark_step = out1_stride(d);
  for (long k = 0; k < classes; ++k) out1_store(marks + k * mark_step, 0);
  for (long t = 0; t < classes; ++t) {
    const long label = target_load(labels + t * label_step);
    if (label < 0) break;
    if (label < classes) out1_store(marks + label * mark_step, 1);
    if (label >= classes) FAULT;
  }
  C loss = 0;
  for (long t = 0; t < classes; ++t) {
    const long label = target_load(labels + t * label_step);
    if (label < 0 || label >= classes) break;
    const C right = self_load(from + label * self_step);
    for (long k = 0; k < classes; ++k) {
      const C over = 1 - right + self_load(from + k * self_step);
      if (out1_load(marks + k * mark_step) == 0 && over > 0) loss += over;
    }
  }
  losses_store(i, loss / classes);
"""

SUM_OF_SOME = sum_of("target_numel / max(target_size(target_RANK - 1), 1L)", out="out0")

MARGIN_OF_SOME_BACKWARD = """
  const long to = out_line(i, d, index), out_step = out_stride(d);
  const long labels = target_line(i, d, index), label_step = target_stride(d);
  const long marks = is_target_line(i, d, index), mark_step = is_target_stride(d);
  C each = grad_output_load(grad_output_RANK == 0 ? 0 : i * grad_output_stride(0));
  each /= classes;
  if (reduction == 1) each /= a.work_items;
  for (long k = 0; k < classes; ++k) {
    const bool marked = is_target_load(marks + k * mark_step) != 0;
    const C here = self_load(from + k * self_step);
    C slope = 0;
    for (long t = 0; t < classes; ++t) {
      const long label = target_load(labels + t * label_step);
      if (label < 0 || label >= classes) break;
      if (!marked && 1 - self_load(from + label * self_step) + here > 0) slope += each;
      if (label != k) continue;
      for (long other = 0; other < classes; ++other) {
        const bool counts = is_target_load(marks + other * mark_step) == 0;
        if (counts && 1 - here + self_load(from + other * self_step) > 0) slope -= each;
      }
    }
    out_store(to + k * out_step, slope);
  }
"""

OF_CLASSES = (
    negative_log("nll_loss_forward"),
    negative_log("nll_loss2d_forward"),
    negative_log_backward("nll_loss_backward"),
    negative_log_backward("nll_loss2d_backward"),
    CustomKernel(
        "multi_margin_loss",
        (Step(over="self", along=("-1",), text=SAMPLE + MARGIN_OF_ONE), SUM_OF_LOSSES),
        FLOATING_ONLY,
        alike=("weight",),
        contiguous=("weight",),
        types=("target=l",),
        scratch=(Scratch("losses", "target"),),
        functions=PLUS,
    ),
    CustomKernel(
        "multi_margin_loss_backward",
        (Step(over="self", along=("-1",), text=SAMPLE + MARGIN_OF_ONE_BACKWARD),),
        FLOATING_ONLY,
        alike=("weight",),
        contiguous=("weight",),
        types=("target=l",),
        like="self",
    ),
    CustomKernel(
        "multilabel_margin_loss_forward",
        (
            Step(over="self", along=("-1",), text=SAMPLE + MARGIN_OF_SOME),
            SUM_OF_SOME,
        ),
        FLOATING_ONLY,
        types=("target=l",),
        scratch=(Scratch("losses", "target"),),
        functions=PLUS,
    ),
    CustomKernel(
        "multilabel_margin_loss_backward",
        (Step(over="self", along=("-1",), text=SAMPLE + MARGIN_OF_SOME_BACKWARD),),
        FLOATING_ONLY,
        types=("target=l",),
        like="self",
    ),
)

CROSS_ENTROPIES = """
  long at[8];
  const long to = out_unravel(i, at);
  const C x = self_load(self_at(at)), y = target_load(target_at(at));
  if (!(x >= 0 && x <= 1)) FAULT;
  out_store(to, (y - 1) * fmax(log1p(-x), (C)-100) - y * fmax(log(x), (C)-100));
"""

UNIT_INTERVAL = """
  long at[8];
  const C x = self_load(self_unravel(i, at));
  if (!(x >= 0 && x <= 1)) FAULT;
"""

OF_PROBABILITIES = (
    CustomKernel(
        "xpurt::cross_entropies",
        (Step(over="self", text=CROSS_ENTROPIES),),
        FLOATING_ONLY,
        schema="(Tensor self, Tensor target) -> Tensor",
        like="self",
        fault="all elements of input should be between 0 and 1",
        flops=20,
    ),
    CustomKernel(
        "xpurt::check_targets",
        (Step(over="self", text=UNIT_INTERVAL),),
        FLOATING_ONLY,
        schema="(Tensor self) -> ()",
        fault="all elements of target should be between 0 and 1",
    ),
)


def binary_cross_entropy(
    self: Tensor, target: Tensor, weight: Tensor | None = None, reduction: int = 1
) -> Tensor:
    """Probabilities beyond 0 to 1 are reported at the next wait."""
    self, target = torch.ops.aten.broadcast_tensors.default([self, target])
    torch.ops.xpurt.check_targets(target)
    losses: Tensor = torch.ops.xpurt.cross_entropies(self, target)
    if weight is not None:
        losses = losses * weight
    if reduction == 0:
        return losses
    return losses.mean() if reduction == 1 else losses.sum()


def smooth_l1_loss_backward(
    grad_output: Tensor, self: Tensor, target: Tensor, reduction: int, beta: float
) -> Tensor:
    """NaN where an operand is NaN."""
    dtype = torch.result_type(self, target)
    if dtype in (torch.float16, torch.bfloat16):
        self, grad_output = self.float(), grad_output.float()
    difference = self.to(grad_output.dtype) - target.to(grad_output.dtype)
    slope = (difference / beta).clamp_(-1, 1) if beta > 0 else difference.sign()
    if reduction == 1:
        slope = slope / slope.numel()
    return (slope * grad_output).to(dtype)


# PyTorch's kernels refuse integers. Of floats of several types the latter two are
# refused, or the result has the type of the first.
FORMS: dict[str, Callable[..., Tensor]] = {
    "binary_cross_entropy": binary_cross_entropy,
    "smooth_l1_loss_backward": smooth_l1_loss_backward,
}
OF_NUMBERS = tuple(
    Decomposed(
        name, FORMS.get(name), kind=FLOATING_ONLY, of_kind=True, same_type=same_type
    )
    for loss, same_type in (
        ("mse_loss", False),
        ("smooth_l1_loss", False),
        ("huber_loss", True),
        ("binary_cross_entropy", True),
    )
    for name in (loss, f"{loss}_backward")
)

ROWS: tuple[CustomKernel | Decomposed, ...] = (
    *OF_CLASSES,
    *OF_PROBABILITIES,
    *OF_NUMBERS,
)

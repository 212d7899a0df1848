"""Rows of the loss of connectionist temporal classification (CTC), and its gradient.

Graves, Fernandez, Gomez, Schmidhuber: "Connectionist Temporal Classification", ICML
2006. The states of a sample are its labels, with a blank between them and at both ends.
log_alpha[b, t, s] is the logarithm of the probability of all paths that are in state s
at time t; log_beta[b, t, s] is that of all paths from there to the end.
"""

from collections.abc import Sequence
from itertools import accumulate

import torch
from torch import Tensor

from xpurt import _C
from xpurt.kernels.kinds.custom_kernel import CustomKernel, Step
from xpurt.kernels.kinds.decomposed import Decomposed
from xpurt.kernels.kinds.row import Kind

# PyTorch's CPU kernel has these types only.
KIND = Kind("fd")

FUNCTIONS = """
#if LANES > 1
#define TOGETHER sub_group_barrier(CLK_GLOBAL_MEM_FENCE)
#else
#define TOGETHER
#endif
#define NOTHING (-(C)INFINITY)

static C log_of_sum(C a, C b, C c) {
  const C most = fmax(a, fmax(b, c));
  if (isinf(most)) return most;
  return log(exp(a - most) + exp(b - most) + exp(c - most)) + most;
}
"""

# Constants and macros of sample b. `lengths` has three rows, each with one number per
# sample: the offset of its labels, its number of times, and its number of labels.
SAMPLE = """
  const long batch = lengths_size(1), classes = log_probs_size(2);
  const long first = lengths_load(b), times = lengths_load(batch + b);
  const long labels = lengths_load(2 * batch + b), states = 2 * labels + 1;
#define LABEL(s) \\
    ((s) % 2 == 0 ? (long)blank \\
                  : (long)targets_load((first + (s) / 2) * targets_stride(0)))
#define LOG_PROB(t, label) \\
    log_probs_load((t) * log_probs_stride(0) + b * log_probs_stride(1) + \\
                   (label) * log_probs_stride(2))
#define AT(x, t, s) (b * x##_stride(0) + (t) * x##_stride(1) + (s) * x##_stride(2))
#define ALPHA(t, s) log_alpha_load(AT(log_alpha, t, s))
#define BETA(t, s) log_beta_load(AT(log_beta, t, s))
"""

# A sub-group runs along the times; the states are divided over its lanes.
FORWARD = Step(
    over="loss",
    lanes=True,
    text=f"""
  const long b = i;
{SAMPLE}
  for (long s = lane; s < states; s += LANES) {{
    const long label = LABEL(s);
    const bool right = label >= 0 && label < classes;
    if (!right) FAULT;
    if (times == 0) continue;
    log_alpha_store(AT(log_alpha, 0, s), right && s < 2 ? LOG_PROB(0, label) : NOTHING);
  }}
  for (long t = 1; t < times; ++t) {{
    TOGETHER;
    for (long s = lane; s < states; s += LANES) {{
      const long label = LABEL(s);
      if (label < 0 || label >= classes) continue;
      const C one = s > 0 ? ALPHA(t - 1, s - 1) : NOTHING;
      const bool skips = s > 1 && LABEL(s - 2) != label;
      const C two = skips ? ALPHA(t - 1, s - 2) : NOTHING;
      const C x = log_of_sum(ALPHA(t - 1, s), one, two) + LOG_PROB(t, label);
      log_alpha_store(AT(log_alpha, t, s), x);
    }}
  }}
  TOGETHER;
  if (lane == 0) {{
    C sum = labels == 0 ? 0 : NOTHING;
    if (times > 0) {{
      const C before = labels > 0 ? ALPHA(times - 1, states - 2) : NOTHING;
      sum = log_of_sum(ALPHA(times - 1, states - 1), before, NOTHING);
    }}
    loss_store(b, -sum);
  }}
""",
    also_reads=("log_alpha",),
)

BETA = Step(
    over="neg_log_likelihood",
    lanes=True,
    text=f"""
  const long b = i;
{SAMPLE}
  for (long t = times - 1; t >= 0; --t) {{
    for (long s = lane; s < states; s += LANES) {{
      const long label = LABEL(s);
      if (label < 0 || label >= classes) {{
        FAULT;
        continue;
      }}
      C on = s >= states - 2 ? 0 : NOTHING;
      if (t < times - 1) {{
        const C one = s + 1 < states ? BETA(t + 1, s + 1) : NOTHING;
        const bool skips = s + 2 < states && LABEL(s + 2) != label;
        const C two = skips ? BETA(t + 1, s + 2) : NOTHING;
        on = log_of_sum(BETA(t + 1, s), one, two);
      }}
      log_beta_store(AT(log_beta, t, s), on + LOG_PROB(t, label));
    }}
    TOGETHER;
  }}
""",
)

# A work-item computes one time of one sample. It first stores, for each label, the
# logarithm of the probability of all paths through it.
GRADIENT = Step(
    over="out",
    along=("2",),
    text=f"""
  long index[8];
  const long to = out_line(i, 2, index), stride = out_stride(2);
  const long t = index[0], b = index[1];
{SAMPLE}
  const C likelihood = neg_log_likelihood_load(b * neg_log_likelihood_stride(0));
  const bool counts = t < times && !(zero_infinity && likelihood == INFINITY);
  for (long c = 0; c < classes; ++c) out_store(to + c * stride, counts ? NOTHING : 0);
  if (!counts) return;
  for (long s = 0; s < states; ++s) {{
    const long label = LABEL(s);
    if (label < 0 || label >= classes) continue;
    const C ways = ALPHA(t, s) + BETA(t, s), before = out_load(to + label * stride);
    out_store(to + label * stride, log_of_sum(before, ways, NOTHING));
  }}
  const C scale = grad_load(b * grad_stride(0));
  for (long c = 0; c < classes; ++c) {{
    const C x = LOG_PROB(t, c), ways = out_load(to + c * stride);
    out_store(to + c * stride, (exp(x) - exp(ways + likelihood - x)) * scale);
  }}
""",
    also_reads=("targets", "lengths", "log_probs", "log_alpha", "log_beta"),
)

Lengths = Sequence[int] | Tensor


def listed(lengths: Lengths) -> list[int]:
    return lengths.tolist() if isinstance(lengths, Tensor) else list(lengths)


def laid_out(
    targets: Tensor, times: list[int], labels: list[int]
) -> tuple[Tensor, Tensor]:
    """The labels of all samples as one vector, and the table of lengths."""
    if targets.dim() == 1:
        starts = list(accumulate(labels, initial=0))[:-1]
    else:
        starts = [b * targets.shape[1] for b in range(len(labels))]
    table = torch.tensor([starts, times, labels], dtype=torch.int64)
    return targets.reshape(-1), table.to(targets.device)


def loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Lengths,
    target_lengths: Lengths,
    blank: int = 0,
    zero_infinity: bool = False,
) -> tuple[Tensor, Tensor]:
    """The loss of each sample, and log_alpha. Raises RuntimeError for types, sizes or
    lengths that do not fit."""
    input_lengths, target_lengths = listed(input_lengths), listed(target_lengths)
    op, how = torch.ops.aten._ctc_loss, (blank, zero_infinity)
    if log_probs.dtype not in (torch.float32, torch.float64) or log_probs.numel() == 0:
        return op(log_probs, targets, input_lengths, target_lengths, *how)  # type: ignore[no-any-return]
    given = log_probs, targets, input_lengths, target_lengths, *how
    losses, log_alpha = (
        log_probs.new_empty(each.shape)
        for each in _C.meta_results("aten::_ctc_loss", "", *given)
    )
    labels, lengths = laid_out(targets, input_lengths, target_lengths)
    torch.ops.xpurt.ctc_loss(log_probs, labels, lengths, blank, losses, log_alpha)
    return losses, log_alpha


def loss_backward(
    grad: Tensor,
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Lengths,
    target_lengths: Lengths,
    neg_log_likelihood: Tensor,
    log_alpha: Tensor,
    blank: int,
    zero_infinity: bool = False,
) -> Tensor:
    input_lengths, target_lengths = listed(input_lengths), listed(target_lengths)
    out = torch.empty_like(log_probs, memory_format=torch.contiguous_format)
    if out.numel() == 0:
        return out
    labels, lengths = laid_out(targets, input_lengths, target_lengths)
    torch.ops.xpurt.ctc_loss_backward(
        *(grad, log_probs, labels, lengths, neg_log_likelihood, log_alpha),
        *(blank, zero_infinity, torch.empty_like(log_alpha), out),
    )
    return out


FAULT = "ctc_loss: Expected labels >= 0 && < the number of classes"

ROWS: tuple[CustomKernel | Decomposed, ...] = (
    CustomKernel(
        "xpurt::ctc_loss",
        (FORWARD,),
        KIND,
        schema="(Tensor log_probs, Tensor targets, Tensor lengths, int blank, "
        "Tensor(a!) loss, Tensor(b!) log_alpha) -> ()",
        functions=FUNCTIONS,
        flops=100,
        fault=FAULT,
    ),
    CustomKernel(
        "xpurt::ctc_loss_backward",
        (BETA, GRADIENT),
        KIND,
        schema="(Tensor grad, Tensor log_probs, Tensor targets, Tensor lengths, "
        "Tensor neg_log_likelihood, Tensor log_alpha, int blank, bool zero_infinity, "
        "Tensor(a!) log_beta, Tensor(b!) out) -> ()",
        functions="#ifndef LANES\n#define LANES 1\n#endif\n" + FUNCTIONS,
        flops=100,
        fault=FAULT,
    ),
    Decomposed("_ctc_loss", loss, KIND),
    Decomposed("_ctc_loss_backward", loss_backward, KIND),
)

"""The kernels of PyTorch's ops, forward and backward, build with Intel's compiler for GPUs,
and its driver launches them: `make test-neo`, one op of eight; `ARGS="-m rest tests/neo"` has
the others."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch.testing._internal.common_methods_invocations import op_db

# The size of a result, or whether operands are refused, is what a kernel computes: of these
# always, and of others in some samples, which end with these messages.
REFUSED_VALUES = re.compile(
    "XPU out of memory|Storage size calculation overflowed|negative dimension"
)
OF_VALUES = {
    "argwhere",
    "bincount",
    "combinations",
    "index_fill",
    "index_put",
    "masked_scatter",
    "masked_select",
    "multinomial",
    "nn.functional.gaussian_nll_loss",
    "nn.functional.one_hot",
    "nonzero",
    "nonzero_static",
    "normal",
    "unique",
}
# An operand is on the CPU.
NOT_OF_XPU = {"tensor_split"}
# Nor jiterator's, which are CUDA's; nor the functions of linear algebra, which give the host
# numbers of rows that a kernel computes.
OPS = [
    op
    for op in op_db
    if op.name not in OF_VALUES | NOT_OF_XPU
    and not op.name.startswith(("jiterator", "linalg", "lu"))
]


def on_device(value: Any, device: torch.device) -> Any:
    if isinstance(value, torch.Tensor):
        return value.detach().to(device).requires_grad_(value.requires_grad)
    if type(value) in (list, tuple):
        return type(value)(on_device(each, device) for each in value)
    return value


def differentiable(result: Any) -> Iterator[torch.Tensor]:
    if isinstance(result, torch.Tensor):
        if result.requires_grad:
            yield result
    elif isinstance(result, (list, tuple)):
        for each in result:
            yield from differentiable(each)


def run(op: Any, sample: Any, device: torch.device) -> None:
    operands = on_device((sample.input, *sample.args), device)
    options = {k: on_device(v, device) for k, v in sample.kwargs.items()}
    results = list(differentiable(op.op(*operands, **options)))
    if results:
        torch.autograd.backward(results, [each * 0 for each in results])


@pytest.mark.one_in(8)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("op", OPS, ids=lambda op: op.full_name)
def test_builds_and_launches(xpu: torch.device, op: Any) -> None:
    for dtype in (torch.float32, torch.int64):
        if not op.supports_dtype(dtype, "cpu"):
            continue
        with_grad = dtype.is_floating_point and op.supports_autograd
        samples = list(op.sample_inputs("cpu", dtype, requires_grad=with_grad))
        for sample in samples[:2]:
            try:
                run(op, sample, xpu)
            except RuntimeError as error:
                if REFUSED_VALUES.search(str(error)) is None:
                    raise
    torch.xpu.synchronize()

"""Operands on different devices raise, as on any accelerator."""

from collections.abc import Callable

import pytest
import torch
from torch.nn.utils.rnn import pack_sequence, pad_sequence

Op = Callable[[torch.Tensor, torch.Tensor], object]
OPS: dict[str, Op] = {
    "add": lambda x, c: x + c,
    "radd": lambda x, c: c + x,
    "add_": lambda x, c: x.add_(c),
    "cpu_add_": lambda x, c: c.add_(x),
    "cat": lambda x, c: torch.cat([x, c]),
    "mm": lambda x, c: x[None] @ c[:, None],
    "where": lambda x, c: torch.where(x > 0, x, c),
    "out": lambda x, c: torch.add(x, x, out=c),
    "foreach": lambda x, c: torch._foreach_add([x], [c]),
    "cpu_scalar_add_": lambda x, c: c[0].add_(x[0]),
    "conv": lambda x, c: torch.conv1d(x[None, None], c[None, None]),
    "conv of a CPU tensor": lambda x, c: torch.conv2d(
        c.expand(16, 3, 64, 3), x.expand(8, 3, 3, 3)
    ),
    "pad_sequence": lambda x, c: pad_sequence([x, c[:2]]),
    "pad_sequence, CPU first": lambda x, c: pad_sequence([c[:2], x]),
    "pack_sequence": lambda x, c: pack_sequence([x, c[:2]]),
}


@pytest.mark.parametrize("op", OPS.values(), ids=list(OPS))
def test_cpu_and_xpu_operands_are_refused(op: Op, xpu: torch.device) -> None:
    on_cpu = torch.ones(3)
    with pytest.raises(
        RuntimeError, match=r"same device.*(xpu:0 and cpu|cpu and xpu:0)"
    ):
        op(torch.ones(3, device=xpu), on_cpu)
    assert on_cpu.tolist() == [1, 1, 1]


def test_cpu_scalars_are_operands(xpu: torch.device) -> None:
    tensor, scalar = torch.ones(3, device=xpu), torch.tensor(2.0)
    for result in (tensor + scalar, scalar + tensor, tensor.mul_(scalar)):
        assert result.device == xpu
    assert (scalar - tensor).tolist() == [0, 0, 0]


def test_cpu_tensors_are_indices(xpu: torch.device) -> None:
    tensor = torch.arange(4.0, device=xpu)
    assert tensor[torch.tensor([3, 1])].tolist() == [3, 1]
    tensor[torch.tensor([0])] = 9
    assert tensor.tolist() == [9, 1, 2, 3]

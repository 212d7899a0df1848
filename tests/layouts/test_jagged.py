"""Nested tensors of layout jagged, which PyTorch makes of dense ops in Python."""

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from layout_calls import differences

Device = torch.device
LENGTHS = (2, 5, 3)


def made(
    device: Device, *inner: int, leaves: list[torch.Tensor], seed: int = 0
) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    parts = [torch.randn(n, *inner, generator=generator).to(device) for n in LENGTHS]
    nested = torch.nested.nested_tensor(
        parts, layout=torch.jagged, requires_grad=True, device=device
    )
    leaves.append(nested)
    return nested


def weights(device: Device, *shape: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(9)
    return torch.randn(shape, generator=generator).to(device)


def heads(device: Device, leaves: list[torch.Tensor], seed: int) -> torch.Tensor:
    return made(device, 2, 8, leaves=leaves, seed=seed).transpose(1, 2)


Use = Callable[[torch.Tensor, Device], Any]
USES: dict[str, Use] = {
    "neg": lambda n, d: -n,
    "gelu": lambda n, d: F.gelu(n),
    "silu": lambda n, d: F.silu(n),
    "exp": lambda n, d: n.exp(),
    "clamp": lambda n, d: n.clamp(-1, 1),
    "to_double": lambda n, d: n.to(torch.float64),
    "to_bfloat16": lambda n, d: n.to(torch.bfloat16),
    "add": lambda n, d: n + n,
    "add_scalar": lambda n, d: n + 2,
    "mul_dense": lambda n, d: n * weights(d, 6),
    "div": lambda n, d: n / (n.abs() + 1),
    "where": lambda n, d: torch.where(n > 0, n, n * 2),
    "linear": lambda n, d: F.linear(n, weights(d, 4, 6), weights(d, 4)),
    "matmul": lambda n, d: n @ weights(d, 6, 3),
    "layer_norm": lambda n, d: F.layer_norm(n, (6,), weights(d, 6), weights(d, 6)),
    "rms_norm": lambda n, d: F.rms_norm(n, (6,)),
    "softmax": lambda n, d: torch.softmax(n, -1),
    "softmax_ragged": lambda n, d: torch.softmax(n, 1),
    "log_softmax": lambda n, d: torch.log_softmax(n, -1),
    "sum_ragged": lambda n, d: n.sum(1),
    "mean_ragged": lambda n, d: n.mean(1),
    "amax_ragged": lambda n, d: n.amax(1),
    "sum_last": lambda n, d: n.sum(-1, keepdim=True),
    "sum_all": lambda n, d: n.sum(),
    "chunk": lambda n, d: n.chunk(2, -1),
    "split": lambda n, d: n.split([2, 4], -1),
    "unbind": lambda n, d: n.unbind(),
    "to_padded": lambda n, d: torch.nested.to_padded_tensor(n, -1.0),
    "to_padded_kept": lambda n, d: n.to_padded_tensor(0.5, (3, 7, 6)),
    "narrow": lambda n, d: torch.narrow(n, -1, 1, 3),
    "cat": lambda n, d: torch.cat([n, n], -1),
    "index": lambda n, d: n[1],
    "select": lambda n, d: n.select(-1, 2),
    "slice": lambda n, d: n[:, :, 1:4],
    "transpose": lambda n, d: n.transpose(1, 2),
    "unsqueeze": lambda n, d: n.unsqueeze(-1),
    "reshape": lambda n, d: n.reshape(3, -1, 2, 3),
    "unflatten": lambda n, d: n.unflatten(-1, [3, 2]),
    "flatten": lambda n, d: n.unsqueeze(-1).flatten(2),
    "masked_fill": lambda n, d: n.masked_fill(n > 0, 5.0),
    "dropout": lambda n, d: F.dropout(n, 0.0),
    "embedding": lambda n, d: F.embedding(
        torch.nested.nested_tensor(
            [torch.tensor([0, 3]), torch.tensor([1])], layout=torch.jagged
        ).to(d),
        weights(d, 4, 3),
    ),
    "zeros_like": lambda n, d: torch.zeros_like(n),
    "clone": lambda n, d: n.clone(),
    "values": lambda n, d: n.values(),
    "offsets": lambda n, d: n.offsets(),
    "there_and_back": lambda n, d: n.cpu().to(d),
    "contiguous": lambda n, d: n.transpose(1, 2).contiguous(),
    "all": lambda n, d: torch.all(n > -9),
    "cumsum": lambda n, d: torch.cumsum(n, -1),
    "pow": lambda n, d: n.abs() ** 1.5,
    "bmm": lambda n, d: torch.bmm(n, weights(d, 3, 6, 2)),
}
# PyTorch has no backward of these for the CPU; that of split ends the process there.
FORWARD_ONLY = {"log_softmax", "sum_ragged", "mean_ragged", "sum_last", "split"}
ATTENTION: dict[str, Callable[[torch.Tensor, torch.Tensor, torch.Tensor], Any]] = {
    "plain": lambda q, k, v: F.scaled_dot_product_attention(q, k, v),
    "scale": lambda q, k, v: F.scaled_dot_product_attention(q, k, v, scale=0.3),
}


def parts(result: Any) -> list[torch.Tensor]:
    """Dense tensors; of a nested one, what holds all of its numbers."""
    if isinstance(result, list | tuple):
        return [part for each in result for part in parts(each)]
    return [result.values(), result.offsets()] if result.is_nested else [result]


def with_gradients(result: Any, leaves: list[torch.Tensor]) -> list[torch.Tensor]:
    found = parts(result)
    wanted = [each.square().sum() for each in found if each.requires_grad]
    if wanted:
        torch.stack(wanted).sum().backward()
    grads = [leaf.grad for leaf in leaves if leaf.grad is not None]
    return [*(part.detach() for part in found), *parts(grads)]


@pytest.fixture(autouse=True)
def _no_prototype_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def run(name: str, device: Device) -> list[torch.Tensor]:
    leaves: list[torch.Tensor] = []
    nested = made(device, 6, leaves=leaves)
    if name in FORWARD_ONLY:
        nested = nested.detach()
    return with_gradients(USES[name](nested, device), leaves)


def attend(name: str, device: Device) -> list[torch.Tensor]:
    leaves: list[torch.Tensor] = []
    operands = [heads(device, leaves, seed) for seed in range(3)]
    return with_gradients(ATTENTION[name](*operands), leaves)


def test_forward_and_backward(xpu: Device) -> None:
    wrong, computed = differences(list(USES), run, xpu)
    assert wrong == {}
    assert len(computed) > 45


def test_attention(xpu: Device) -> None:
    wrong, computed = differences(list(ATTENTION), attend, xpu)
    assert wrong == {}
    assert computed == list(ATTENTION)

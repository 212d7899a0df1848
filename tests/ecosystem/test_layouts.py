"""Sparse, quantized and nested tensors on xpu."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import nn

Use = Callable[[torch.Tensor], torch.Tensor]

INDICES = torch.tensor([[0, 1, 1], [2, 0, 2]])
VALUES = torch.tensor([3.0, 4.0, 5.0])
DENSE = torch.arange(12.0).reshape(3, 4)

SPARSE: dict[str, Use] = {
    "to_dense": lambda s: s.to_dense(),
    "coalesce": lambda s: s.coalesce().values(),
    "add": lambda s: (s + s).to_dense(),
    "scale": lambda s: (s * 2).to_dense(),
    "transpose": lambda s: s.t().to_dense(),
    "mm": lambda s: torch.sparse.mm(s, DENSE.to(s.device)),
    "sum": lambda s: torch.sparse.sum(s, 0).to_dense(),
    "to_csr": lambda s: s.to_sparse_csr().to_dense(),
    "csr_mm": lambda s: s.to_sparse_csr() @ DENSE.to(s.device),
    "csc": lambda s: s.to_dense().to_sparse_csc().to_dense(),
    "bsr": lambda s: F.pad(s.to_dense(), (0, 1)).to_sparse_bsr((2, 2)).to_dense(),
    "there_and_back": lambda s: s.cpu().to(s.device).to_dense(),
}


@pytest.mark.parametrize("use", SPARSE)
def test_sparse(use: str, xpu: torch.device) -> None:
    made = torch.sparse_coo_tensor(INDICES, VALUES, (2, 3), device=xpu)
    assert (made.device, made.layout) == (xpu, torch.sparse_coo)
    found = SPARSE[use](made)
    assert found.device == xpu
    expected = SPARSE[use](torch.sparse_coo_tensor(INDICES, VALUES, (2, 3)))
    torch.testing.assert_close(found.cpu(), expected)


def test_csr_from_its_parts(xpu: torch.device) -> None:
    rows, columns = torch.tensor([0, 1, 3]), torch.tensor([2, 0, 2])
    made = torch.sparse_csr_tensor(rows, columns, VALUES, (2, 3), device=xpu)
    assert (made.device, made.layout) == (xpu, torch.sparse_csr)
    assert made.to_dense().tolist() == [[0, 0, 3], [4, 0, 5]]
    assert "xpu" in repr(made)


def test_sparse_gradients_and_their_optimizer(xpu: torch.device) -> None:
    results = []
    for device in ("cpu", xpu):
        torch.manual_seed(0)
        table = nn.Embedding(10, 3, sparse=True).to(device)
        optimizer = torch.optim.SparseAdam(table.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            table(torch.tensor([1, 2, 2], device=device)).square().sum().backward()
            assert table.weight.grad.is_sparse
            assert table.weight.grad.device == table.weight.device
            optimizer.step()
        results.append(table.weight.detach().cpu())
    torch.testing.assert_close(results[1], results[0])


QUANTIZED: dict[str, Use] = {
    "dequantize": lambda q: q.dequantize(),
    "int_repr": lambda q: q.int_repr(),
    "clone": lambda q: q.clone().dequantize(),
    "transpose": lambda q: q.t().contiguous().dequantize(),
    "relu": lambda q: torch.relu(q).dequantize(),
    "select": lambda q: q[1].dequantize(),
    "there_and_back": lambda q: q.cpu().to(q.device).dequantize(),
    "copy_": lambda q: q.clone().copy_(q).dequantize(),
    "from_float": lambda q: q.clone().copy_(q.dequantize() / 2).dequantize(),
}


@pytest.mark.filterwarnings("ignore:.*quantize_per_tensor")
@pytest.mark.parametrize("channels", [False, True], ids=["tensor", "channel"])
@pytest.mark.parametrize("use", QUANTIZED)
def test_quantized(use: str, channels: bool, xpu: torch.device) -> None:
    if channels and use in ("from_float", "copy_", "transpose", "relu"):
        pytest.skip("PyTorch's CPU has no such op per channel")

    def made(device: torch.device | str) -> torch.Tensor:
        source = (DENSE - 5).to(device)
        if not channels:
            return torch.quantize_per_tensor(source, 0.1, 3, torch.qint8)
        scales = torch.tensor([0.1, 0.2, 0.3], device=device)
        points = torch.zeros(3, dtype=torch.long, device=device)
        return torch.quantize_per_channel(source, scales, points, 0, torch.qint8)

    quantized = made(xpu)
    assert quantized.device == xpu
    found = QUANTIZED[use](quantized)
    assert found.device == xpu
    torch.testing.assert_close(found.cpu(), QUANTIZED[use](made("cpu")))


@pytest.mark.parametrize("layout", [torch.strided, torch.jagged], ids=str)
def test_nested(layout: torch.layout, xpu: torch.device) -> None:
    parts = [torch.randn(2, 3), torch.randn(4, 3)]
    weight = torch.randn(5, 3)
    results = []
    for device in (torch.device("cpu"), xpu):
        made = torch.nested.nested_tensor(
            parts, device=device, layout=layout, requires_grad=True
        )
        assert made.device == device
        padded = torch.nested.to_padded_tensor(F.linear(made, weight.to(device)), 0.0)
        padded.square().sum().backward()
        assert made.grad is not None
        grads = [part.cpu() for part in made.grad.unbind()]
        results.append((padded.detach().cpu(), *grads))
    for found, expected in zip(results[1], results[0], strict=True):
        torch.testing.assert_close(found, expected)

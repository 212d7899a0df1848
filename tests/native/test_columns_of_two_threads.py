"""A host kernel that writes to a column leaves the columns beside it as they are."""

from collections.abc import Callable

import pytest
import torch
from auto.stopped_kernel import Task, stopped_eigvals

Tensor = torch.Tensor

# Parts of a matrix that alternate in memory, and the other part.
PARTS: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]]] = {
    "columns": (lambda x: x[:, 0], lambda x: x[:, 1]),
    "every second": (lambda x: x.view(-1)[::2], lambda x: x.view(-1)[1::2]),
    "a corner": (lambda x: x[:4, :1], lambda x: x[:, 1]),
    "transposed": (lambda x: x[2:6, :1].t(), lambda x: x[:, 1]),
}
DTYPES = (torch.float32, torch.float16, torch.float64, torch.bfloat16)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("part", PARTS)
def test_the_part_beside_it_is_written_meanwhile(
    xpu: torch.device, part: str, dtype: torch.dtype
) -> None:
    ours, other = PARTS[part]
    x = torch.zeros(8, 2, dtype=dtype, device=xpu)
    expected = torch.zeros(8, 2, dtype=dtype)
    torch.xpu.synchronize()
    with stopped_eigvals() as kernel:
        host = kernel.begin(ours(x))
        device = Task(lambda: (other(x).add_(2), torch.xpu.synchronize()))
        device.join(0.2)  # under AUTO it may wait for the host
        kernel.finish(host)
        device.done()
    ours(expected).add_(1)
    other(expected).add_(2)
    assert x.tolist() == expected.tolist()


@pytest.mark.parametrize("part", PARTS)
def test_parts_are_written_on_the_host(xpu: torch.device, part: str) -> None:
    ours, other = PARTS[part]
    x = torch.rand(8, 2)
    there = x.to(xpu)
    with stopped_eigvals() as kernel:
        kernel.go_on.set()
        torch.linalg.eigvals(there, out=ours(there))
    ours(x).add_(1)
    assert there.tolist() == x.tolist()
    assert other(there).tolist() == other(x).tolist()


def test_several_parts_of_one_storage(xpu: torch.device) -> None:
    """A host kernel with two results that alternate in memory."""
    matrix = torch.eye(3) * 2 + 0.1
    room = torch.zeros(3, 6)
    there = room.to(xpu)
    for tensor, on in ((room, matrix), (there, matrix.to(xpu))):
        torch.linalg.eigh(on, out=(tensor[:, 0], tensor[:, 1::2]))
    torch.testing.assert_close(there.cpu().abs(), room.abs())

"""Several tensors of one storage: dtypes, offsets, lifetimes, visible writes."""

import gc
from collections.abc import Callable

import pytest
import torch

from xpurt import _C
from xpurt.testing.oracle import agree

pytestmark = pytest.mark.usefixtures("policy")

Use = Callable[[torch.Tensor], object]


def of_storage(
    tensor: torch.Tensor, offset: int, size: tuple[int, ...], stride: tuple[int, ...]
) -> torch.Tensor:
    made = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
    return made.set_(tensor.untyped_storage(), offset, size, stride)


def through_set(x: torch.Tensor) -> object:
    other = of_storage(x, 2, (3, 2), (4, 1))
    other.mul_(10)
    x.view(-1)[2:4].add_(1)
    return other, x, other + 1, other.sum()


def bytes_of_numbers(x: torch.Tensor) -> object:
    seen = x.view(torch.uint8)
    seen[..., 3::4].bitwise_xor_(128)  # the signs
    return x, seen.sum(), x.view(torch.int32) < 0


def halves_of_complex(x: torch.Tensor) -> object:
    pairs = torch.view_as_complex(x.view(-1, 2))
    pairs.mul_(1j)
    pairs.real.add_(1)
    return x, pairs.conj().imag + 1, pairs.abs()


def views_of_views(x: torch.Tensor) -> object:
    view = x.view(2, 6).t()[1:5].unsqueeze(0).expand(3, 4, 2)[1].transpose(0, 1)
    inner = view[1:, ::2].squeeze(0)[1:]
    inner.fill_(50)
    view[0].sub_(view[1])
    return x, view, inner, view.sum(1), view @ view.t(), view.flip(0) + view


def diagonals_and_windows(x: torch.Tensor) -> object:
    x.diagonal().add_(100)
    windows = x.view(-1).unfold(0, 4, 2)  # elements that several windows show
    x[0].zero_()
    return windows.sum(1), windows.softmax(1), x.diagonal(1), windows.unfold(0, 2, 1)


def split_and_joined(x: torch.Tensor) -> object:
    parts = x.split(1)
    torch._foreach_add_(list(parts), [1.0, 2.0, 3.0])
    parts[0].copy_(parts[2])
    a, b = x.chunk(2, 1)
    b.add_(a)
    return torch.cat(parts[::-1]), torch.cat((b, a), 1), x


def a_detached_twin(x: torch.Tensor) -> object:
    twin, data, alias = x.detach(), x.data, torch.ops.aten.alias(x)
    twin.add_(1)
    data.mul_(2)
    alias.relu_()
    return x, twin, data, alias


def a_storage_that_grows(x: torch.Tensor) -> object:
    other = of_storage(x, 0, (12,), (1,))
    x.resize_(5, 4)[3:].fill_(7)
    other.add_(1)  # it sees the new memory
    return x, other, other.untyped_storage().nbytes()


USES: dict[str, Use] = {
    use.__name__: use
    for use in (
        through_set,
        bytes_of_numbers,
        halves_of_complex,
        views_of_views,
        diagonals_and_windows,
        split_and_joined,
        a_detached_twin,
        a_storage_that_grows,
    )
}


@pytest.mark.parametrize("inference", [False, True], ids=["", "inference"])
@pytest.mark.parametrize("use", USES)
def test_use(use: str, inference: bool, xpu: torch.device) -> None:
    with torch.inference_mode(inference):
        agree(USES[use], torch.arange(12.0).reshape(3, 4), grads=False)


def test_the_last_view_keeps_the_storage(xpu: torch.device) -> None:
    gc.collect()
    before = _C.live_memory()
    base = torch.arange(1000.0, device=xpu)
    views = [base[i * 100 :].view(torch.int32)[:3] for i in range(3)]
    del base
    assert _C.live_memory()[0] == before[0] + 1
    assert [v.view(torch.float32).tolist()[0] for v in views] == [0, 100, 200]
    while views:
        views.pop()
        expected = before[0] + bool(views)
        assert _C.live_memory()[0] == expected
    assert _C.live_memory() == before

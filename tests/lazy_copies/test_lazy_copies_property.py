"""Programs drawn at random give the same numbers with lazy copies and without."""

from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import xpurt
from xpurt import _C

ELEMENTS = 24
Tensors = list[torch.Tensor]


def there(tensors: Tensors, i: int, _: int) -> None:
    tensors.append(tensors[i].to("xpu" if tensors[i].is_cpu else "cpu"))


def clone(tensors: Tensors, i: int, _: int) -> None:
    tensors.append(tensors[i].clone())


def add_in_place(tensors: Tensors, i: int, j: int) -> None:
    tensors[i].add_(j + 1)


def write_a_part(tensors: Tensors, i: int, j: int) -> None:
    tensors[i][j % 4, ::2] = float(j)


def by_out(tensors: Tensors, i: int, j: int) -> None:
    other = tensors[j % len(tensors)].to(tensors[i].device)
    torch.mul(tensors[i], other, out=tensors[i])


def copy_from(tensors: Tensors, i: int, j: int) -> None:
    tensors[i].copy_(tensors[j % len(tensors)])


def transposed(tensors: Tensors, i: int, _: int) -> None:
    tensors[i].copy_(tensors[i].flip(0))


def foreach(tensors: Tensors, i: int, j: int) -> None:
    device = tensors[i].device
    torch._foreach_mul_([t for t in tensors if t.device == device], 1 + j % 3)


def running_statistics(tensors: Tensors, i: int, _: int) -> None:
    first = tensors[i]
    mean, variance = first.view(-1)[:6], first.view(-1)[6:12]
    source = torch.arange(24.0, device=first.device).view(4, 6)
    torch.nn.functional.batch_norm(source, mean, variance, training=True)


def scatter(tensors: Tensors, i: int, j: int) -> None:
    index = torch.tensor([[j % 4]], device=tensors[i].device)
    tensors[i].scatter_add_(0, index, torch.ones(1, 1, device=tensors[i].device))


def forget(tensors: Tensors, i: int, _: int) -> None:
    if len(tensors) > 1:
        del tensors[i]


def through_numpy(tensors: Tensors, i: int, j: int) -> None:
    if tensors[i].is_cpu:
        tensors[i].numpy()[j % 4] += 1


def through_dlpack(tensors: Tensors, i: int, j: int) -> None:
    torch.from_dlpack(tensors[i])[j % 4] -= 1


def through_a_share(tensors: Tensors, i: int, j: int) -> None:
    xpurt.share(tensors[i])[j % 4] += 2
    torch.xpu.synchronize()


def resized(tensors: Tensors, i: int, _: int) -> None:
    if tensors[i].untyped_storage().resizable():
        tensors[i].resize_(5, 6).resize_(4, 6)


def gradient(tensors: Tensors, i: int, _: int) -> None:
    leaf = tensors[i].detach().requires_grad_()
    (leaf.to("xpu") * 2).sum().backward()
    tensors[i].sub_(leaf.grad)


STEPS: dict[str, Callable[[Tensors, int, int], None]] = {
    step.__name__: step
    for step in (
        there, clone, add_in_place, write_a_part, by_out, copy_from, transposed, foreach,
        running_statistics, scatter, forget, through_numpy, through_dlpack,
        through_a_share, resized, gradient,
    )
}  # fmt: skip

PROGRAMS = st.lists(
    st.tuples(
        # Conversions are what it is about.
        st.sampled_from(["there"] * 6 + list(STEPS)),
        st.integers(0, 1000),
        st.integers(0, 1000),
    ),
    min_size=2,
    max_size=25,
)


def run(program: list[tuple[str, int, int]], lazy: bool) -> tuple[list[object], int]:
    tensors = [torch.arange(float(ELEMENTS)).view(4, 6).clone()]
    seen = 0
    with xpurt.lazy_copies(lazy):
        for name, i, j in program:
            STEPS[name](tensors, i % len(tensors), j)
            seen += sum(_C.is_lazy(tensor) for tensor in tensors)
    torch.xpu.synchronize()
    return [(t.device.type, t.tolist()) for t in tensors], seen


@pytest.mark.parametrize("policy", ["auto", "sycl", "native"])
def test_programs_give_the_same_numbers(policy: str) -> None:
    lazy_tensors = 0

    @settings(max_examples=150)
    @given(program=PROGRAMS)
    def check(program: list[tuple[str, int, int]]) -> None:
        nonlocal lazy_tensors
        with xpurt.kernel_policy(policy):
            found, seen = run(program, lazy=True)
            expected, none = run(program, lazy=False)
        lazy_tensors += seen
        assert none == 0
        assert str(found) == str(expected)  # nan is nan

    with xpurt.xpu_mapping("CPU"):
        check()
    assert lazy_tensors > 100

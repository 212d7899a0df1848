"""Tensors made on xpu out of nothing."""

from collections.abc import Callable

import pytest
import torch

MAKERS: dict[str, Callable[[torch.device], torch.Tensor]] = {
    "tensor": lambda d: torch.tensor([[1.5, 2.0], [3.0, -1.0]], device=d),
    "zeros": lambda d: torch.zeros(2, 3, dtype=torch.int16, device=d),
    "ones": lambda d: torch.ones(0, 3, device=d),
    "full": lambda d: torch.full((2, 2), True, device=d),
    "arange": lambda d: torch.arange(1, 10, 3, device=d),
    "linspace": lambda d: torch.linspace(0, 1, 7, device=d),
    "logspace": lambda d: torch.logspace(0, 2, 5, device=d),
    "eye": lambda d: torch.eye(3, 4, device=d),
    "scalar": lambda d: torch.tensor(2.5, dtype=torch.float64, device=d),
    "tril_indices": lambda d: torch.tril_indices(4, 3, device=d),
    "hann_window": lambda d: torch.hann_window(8, device=d),
    "complex": lambda d: torch.complex(
        torch.ones(2, device=d), torch.ones(2, device=d)
    ),
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=list(MAKERS))
def test_makers_give_what_the_cpu_gives(
    make: Callable[[torch.device], torch.Tensor], xpu: torch.device
) -> None:
    made, expected = make(xpu), make(torch.device("cpu"))
    assert made.device == xpu
    assert made.dtype == expected.dtype
    assert made.stride() == expected.stride()
    assert torch.equal(made.cpu(), expected)


def test_an_empty_tensor_takes_strides_and_memory_format(xpu: torch.device) -> None:
    strided = torch.empty_strided((2, 3), (1, 2), device=xpu)
    assert strided.stride() == (1, 2)
    last = torch.empty(1, 4, 2, 2, device=xpu, memory_format=torch.channels_last)
    assert last.is_contiguous(memory_format=torch.channels_last)


def test_a_like_tensor_stays_on_its_device(xpu: torch.device) -> None:
    source = torch.ones(3, 2, device=xpu).t()
    made = torch.zeros_like(source)
    assert made.device == xpu
    assert made.stride() == source.stride()


def test_xpu_memory_cannot_be_pinned(xpu: torch.device) -> None:
    with pytest.raises(RuntimeError, match="can be pinned"):
        torch.empty(2, device=xpu, pin_memory=True)


def test_an_ordinal_that_does_not_exist(xpu: torch.device) -> None:
    with pytest.raises(RuntimeError, match="xpu:15"):
        torch.empty(2, device="xpu:15")


def test_uninitialized_memory_is_filled_when_asked_to(xpu: torch.device) -> None:
    torch.use_deterministic_algorithms(True)
    try:
        assert torch.empty(4, device=xpu).isnan().all()
    finally:
        torch.use_deterministic_algorithms(False)

"""Compiled programs resolve conjugated and negated tensors where the program does."""

from collections.abc import Callable

import pytest
import torch

PROGRAMS = {
    "conj": lambda a: torch.view_as_real(a.conj().resolve_conj()),
    "mH": lambda a: torch.view_as_real(a.mH.resolve_conj()),
    "imag": lambda a: a.conj().imag.resolve_neg() + 1,
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.mappings("CPU", "GPU")
def test_resolved(name: str, xpu: torch.device) -> None:
    program: Callable[[torch.Tensor], torch.Tensor] = PROGRAMS[name]
    x = torch.randn(3, 4, dtype=torch.complex64)
    torch._dynamo.reset()
    found = torch.compile(program)(x.to(xpu))
    torch.testing.assert_close(found.cpu(), program(x))

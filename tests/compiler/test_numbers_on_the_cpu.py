"""CPU tensors without dimensions beside xpu tensors, in the sycl form."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

import xpurt

PROGRAMS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "first operand": lambda number, x: number * x,
    "second operand": lambda number, x: x - number,
    "of a function": torch.pow,
    "computed": lambda number, x: (number + 1).exp() * x,
    "computed from a list": lambda number, x: torch.tensor([2, 3]).prod() + x,
    "from the device": lambda number, x: x.cpu().sum() * x,
    "a condition's": lambda number, x: torch.where(x > 2, number, x),
    "an index": lambda number, x: x[torch.tensor(2)] + x,
}


@pytest.mark.one_in(2)
@pytest.mark.mappings("CPU", "GPU")
@pytest.mark.filterwarnings("error:torch.compile runs op by op")
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_the_result_is_on_the_device(
    program: Callable[[Tensor, Tensor], Tensor], xpu: torch.device
) -> None:
    number, x = torch.tensor(2.0), torch.arange(6.0, device=xpu)
    with xpurt.kernel_policy("sycl"):
        found = torch.compile(program)(number, x)
    assert found.device == xpu
    torch.testing.assert_close(found, program(number, x))


def test_where_inductor_takes_the_device_of_the_first_operand(
    xpu: torch.device,
) -> None:
    """Its code for the host would read the memory of the device: the graph runs op by
    op."""
    number, x = torch.tensor(2.0), torch.arange(6.0, device=xpu)
    with (
        xpurt.kernel_policy("sycl"),
        pytest.warns(RuntimeWarning, match=r"aten.addcmul.default would run on cpu"),
    ):
        found = torch.compile(torch.addcmul)(number, x, x)
    assert found.device == xpu
    torch.testing.assert_close(found, torch.addcmul(number, x, x))

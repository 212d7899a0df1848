"""Arguments that do not fit raise what they raise on the CPU, whatever would run the op."""

from collections.abc import Callable

import pytest
import torch
from torch.nn import functional as F

import xpurt
from xpurt.testing import agree

X = torch.ones(5, 3)

CASES: dict[str, tuple[Callable[..., torch.Tensor], tuple[torch.Tensor, ...]]] = {
    "a negative parameter": (lambda x: F.softshrink(x, -0.5), (X,)),
    "a dimension too few": (lambda x: F.max_pool2d(x, 2), (X,)),
    "a complex number for integers": (
        lambda x, mask, value: x.masked_fill(mask, value),
        (torch.ones(2, dtype=torch.int64), torch.ones(()).bool(), torch.tensor(1j)),
    ),
    "weights of two of three classes": (
        lambda x, target, weight: F.cross_entropy(x, target, weight),
        (X, torch.zeros(5, dtype=torch.int64), torch.ones(2)),
    ),
}


@pytest.mark.parametrize("policy", ["auto", "sycl"])
@pytest.mark.parametrize("name", CASES)
def test_the_error_is_the_cpu_s(name: str, policy: str, xpu: torch.device) -> None:
    function, arguments = CASES[name]
    with xpurt.kernel_policy(policy), pytest.raises(RuntimeError) as error:
        agree(function, *arguments, device=xpu)
    with pytest.raises(RuntimeError) as of_cpu:
        function(*arguments)
    assert str(error.value) == str(of_cpu.value)

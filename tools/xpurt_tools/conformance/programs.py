"""Programs around a sample of the databases."""

import copy
import inspect
from collections.abc import Callable, Iterator
from typing import Any, Final

from torch import Tensor, nn
from torch.nn import functional as F

from xpurt.testing import outcome
from xpurt_tools.conformance.check_module import Made
from xpurt_tools.conformance.inputs import moved
from xpurt_tools.conformance.trial import CPU

Programs = Callable[[Made], Iterator[tuple[str, Made]]]


class After(nn.Module):
    """A module of one argument, and what is computed of its result."""

    def __init__(self, module: nn.Module, after: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.module = module
        self.after = after

    def forward(self, x: Tensor) -> Tensor:
        return self.after(self.module(x))


class Normed(nn.Module):
    """A convolution, a batch norm with statistics, an addition, an activation."""

    def __init__(self, module: nn.Module, norm: nn.Module) -> None:
        super().__init__()
        self.module, self.norm = module, norm

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm(self.module(x))
        return F.relu(y + y.mean())


AFTER: Final[dict[str, Callable[[Tensor], Tensor]]] = {
    "relu": F.relu,
    "gelu of a sum": lambda y: F.gelu(y + y.abs()),
    "written in place": lambda y: y.clone().mul_(2).add_(1),
}


def around(made: Made) -> Iterator[tuple[str, Made]]:
    """The module by itself; with what follows it, if it computes a tensor of one."""
    module, args, kwargs = made
    yield "call", made
    result = result_of_one(made)
    if result is None:
        return
    for name, after in AFTER.items():
        yield name, (After(module, after).train(module.training), args, kwargs)
    if (norm := norm_after(module, result)) is not None:
        program = Normed(module, norm).train(module.training)
        yield "batch norm", (program, args, kwargs)


def result_of_one(made: Made) -> Tensor | None:
    """The floating point tensor that the module computes of its one argument."""
    module, args, kwargs = made
    if len(args) != 1 or kwargs:
        return None
    called: Any = copy.deepcopy(module)
    result, error = outcome(called, *moved(args, CPU))
    found = error is None and isinstance(result, Tensor) and result.is_floating_point()
    return result if found else None


def norm_after(module: nn.Module, result: Tensor) -> nn.Module | None:
    """A batch norm with statistics, if the module is a convolution of a batch."""
    if not isinstance(module, nn.Conv1d | nn.Conv2d | nn.Conv3d):
        return None
    if result.dim() != module.weight.dim():
        return None
    kinds = {3: nn.BatchNorm1d, 4: nn.BatchNorm2d, 5: nn.BatchNorm3d}
    norm: Any = kinds[result.dim()](result.shape[1])
    norm.running_mean.fill_(0.25)
    norm.running_var.fill_(2.0)
    return norm.to(result.dtype)  # type: ignore[no-any-return]


def by_position(made: Made) -> Made:
    """The arguments as a program gives them: by position, where that can be."""
    module, args, kwargs = made
    bound = inspect.signature(module.forward).bind(*args, **kwargs)
    return module, bound.args, bound.kwargs

"""The order of equal elements, which PyTorch does not define.

A sort that is not stable, `topk`, `kthvalue`, `median` and `mode` return indices. Of
equal elements PyTorch's CPU kernels take one or another, and xpu's rows always the
first, or of a mode the last. Both are right if they point to the same values. So a
result that differs from the CPU's is compared once more, with the CPU's result in the
order of the rows. Values are never replaced.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch.utils._python_dispatch import TorchDispatchMode

T = TypeVar("T")
_aten = torch.ops.aten


def in_stable_order(function: Callable[[], T]) -> T:
    """The result of a function of CPU tensors, with the indices of a stable order."""
    with _Stable():  # type: ignore[no-untyped-call]
        return function()


class _Stable(TorchDispatchMode):  # type: ignore[no-untyped-call]
    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        found = function(*args, **kwargs)
        choose = _CHOICES.get(function.overloadpacket)
        if choose is None or not isinstance(found, tuple) or args[0].dim() == 0:
            return found
        given = _arguments(function, args, kwargs)
        chosen = choose(found, given)
        if chosen is not None and _points_to(chosen, found, given):
            found[1].copy_(chosen.view_as(found[1]))
        return found


def _arguments(function: Any, args: Any, kwargs: Any) -> dict[str, Any]:
    """All arguments of a call by their names in the schema."""
    schema = function._schema.arguments
    given = {
        each.name: each.default_value for each in schema if each.has_default_value()
    }
    return {
        **given,
        **dict(zip((each.name for each in schema), args, strict=False)),
        **kwargs,
    }


def _points_to(chosen: Any, found: Any, given: dict[str, Any]) -> bool:
    """Whether the indices point to the values that the CPU kernel found."""
    values = given["self"].gather(given["dim"], chosen).view_as(found[0])
    return bool(
        ((values == found[0]) | ((values != values) & (found[0] != found[0]))).all()
    )


def _order(given: dict[str, Any], descending: bool) -> Any:
    return torch.sort(
        given["self"], dim=given["dim"], descending=descending, stable=True
    )[1]


def _sorted(found: Any, given: dict[str, Any]) -> Any:
    return _order(given, bool(given["descending"]))


def _largest(found: Any, given: dict[str, Any]) -> Any:
    order = _order(given, bool(given["largest"]))
    return order.narrow(given["dim"], 0, given["k"])


def _kth(found: Any, given: dict[str, Any]) -> Any:
    return _order(given, False).narrow(given["dim"], given["k"] - 1, 1)


def _like_the_found(found: Any, given: dict[str, Any], last: bool) -> Any:
    """The first or last place of each value that was found."""
    dim = given["dim"]
    value = found[0] if given["keepdim"] else found[0].unsqueeze(dim)
    x = given["self"]
    same = (x == value) | ((x != x) & (value != value))
    places = torch.arange(x.shape[dim]).view([-1] + [1] * (x.dim() - 1 - dim % x.dim()))
    if last:
        return torch.where(same, places, -1).amax(dim, keepdim=True)
    return torch.where(same, places, x.shape[dim]).amin(dim, keepdim=True)


def _median(found: Any, given: dict[str, Any]) -> Any:
    """The element in the middle of a stable order; of NaN the first."""
    x, dim = given["self"], given["dim"]
    first = _like_the_found(found, given, last=False)
    if bool((found[0] != found[0]).any()):
        return first
    size = x.shape[dim]
    missing = (x != x).sum(dim, keepdim=True)
    middle = (size - 1 - missing) // 2
    return _order(given, False).gather(dim, middle)


def _mode(found: Any, given: dict[str, Any]) -> Any:
    return _like_the_found(found, given, last=True)


_CHOICES: dict[Any, Callable[[Any, dict[str, Any]], Any]] = {
    _aten.sort: _sorted,
    _aten.topk: _largest,
    _aten.kthvalue: _kth,
    _aten.median: _median,
    _aten.nanmedian: _median,
    _aten.mode: _mode,
}

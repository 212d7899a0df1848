"""The oracle: a callable's results on CPU tensors are the expected ones on xpu.

    agree(torch.softmax, torch.randn(3, 4, requires_grad=True), dim=1)

runs it on both, and compares results, changed arguments and gradients: values, dtype,
shape and strides.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import torch
from torch.testing import assert_close
from torch.utils._pytree import tree_flatten_with_path, tree_map, tree_structure

from xpurt.arguments import check_callable, check_flag, check_type, shown

T = TypeVar("T")

_OF_FLOAT32 = (1.3e-6, 1e-5)  # rtol and atol, as in torch.testing.assert_close


class Disagreement(AssertionError):
    """Two devices gave different results; the message names the place and the error."""


def agree(
    function: Callable[..., T],
    *args: Any,
    device: torch.device | str = "xpu",
    grads: bool = True,
    strides: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    **kwargs: Any,
) -> T:
    """Call `function` with CPU tensors and with copies on `device`, and compare.

    Tensors may be anywhere in lists, tuples and dicts of the arguments and of the
    result. Copies keep strides, shared storages, `requires_grad`, and the class
    Parameter. With `grads`, results that have a graph get the same gradient on both
    sides, and the gradients of the arguments are compared, too. `rtol` and `atol` go
    together; without them they depend on the dtype, as in `torch.testing`. Python
    numbers count as float32, since the dtype that an `.item()` read is not known.

    Returns the result on `device`. Raises `Disagreement` for a difference. If both
    sides raise exceptions of the same type, the one of `device` is raised; if only one
    side raises, or the types differ, that is a `Disagreement`.
    """
    check_callable("agree()", function)
    check_flag("agree(grads=)", grads)
    target = _device("agree(device=)", device)
    expected_args, expected_kwargs = copied((args, kwargs), torch.device("cpu"))
    actual_args, actual_kwargs = copied((args, kwargs), target)
    compare = Comparison(rtol, atol, strides=strides)

    expected, error = outcome(function, *expected_args, **expected_kwargs)
    actual, actual_error = outcome(function, *actual_args, **actual_kwargs)
    compare_errors(error, actual_error, device)
    if actual_error is not None:
        raise actual_error

    compare("result", expected, actual)
    if grads:
        _backward(expected, actual)
    before = (expected_args, expected_kwargs)
    after = (actual_args, actual_kwargs)
    compare("argument", before, after)
    if grads:
        compare("gradient of argument", _gradients(before), _gradients(after))
    return cast(T, actual)


def copied(tree: T, device: torch.device) -> T:
    """`tree` with its tensors copied to `device`: same strides, same sharing."""
    target = _device("copied()", device)
    storages: dict[int, torch.Tensor] = {}
    tensors: dict[int, torch.Tensor] = {}

    def copy(leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor) or leaf.is_meta:
            return leaf  # a tensor without bytes has none to copy
        if id(leaf) not in tensors:
            tensors[id(leaf)] = _copy(leaf, target, storages)
        return tensors[id(leaf)]

    copies: T = tree_map(copy, tree)
    return copies


def _device(what: str, device: torch.device | str) -> torch.device:
    remedy = 'Give one as torch.device("xpu") or "xpu:0".'
    check_type(what, device, torch.device | str, "a device", remedy)
    try:
        return torch.device(device)
    except RuntimeError:
        raise ValueError(
            f"{what} wants a device that PyTorch knows; found {shown(device)}. {remedy}"
        ) from None


def _copy(
    tensor: torch.Tensor, device: torch.device, storages: dict[int, torch.Tensor]
) -> torch.Tensor:
    source = tensor.detach()
    has_storage = source.layout is torch.strided and not source.is_quantized
    if not has_storage or device.type == "lazy":
        copy = source.to(device, copy=True)
    else:
        # The whole storage is copied, and the view is made again on the copy. So
        # overlaps, gaps and shared storages are kept.
        storage = source.untyped_storage()
        key = storage._cdata
        if key not in storages:
            flat = torch.empty(0, dtype=torch.uint8).set_(storage)
            storages[key] = flat.to(device, copy=True)
        base = torch.empty(0, dtype=source.dtype, device=device)
        copy = base.set_(
            storages[key].untyped_storage(),
            source.storage_offset(),
            source.size(),
            source.stride(),
        )
        if source.is_conj():
            copy = copy.conj()
        if source.is_neg():
            copy = torch._neg_view(copy)
    if isinstance(tensor, torch.nn.Parameter):
        return torch.nn.Parameter(copy, tensor.requires_grad)
    return copy.requires_grad_(tensor.requires_grad)


class Comparison:
    """Compares trees of results, `expected` of the CPU with `actual` of a device.

    rtol, atol: go together; without them they depend on the dtype.
    strides: whether strides are compared, as in `agree`.
    empty_strides: whether strides of tensors without elements are compared, too.
    values: whether values are compared; else only dtype, shape, layout and such.
    device_type: the required device type of the tensors of `actual`; None allows any.
    """

    def __init__(
        self,
        rtol: float | None = None,
        atol: float | None = None,
        *,
        strides: bool = True,
        empty_strides: bool = False,
        values: bool = True,
        device_type: str | None = None,
    ) -> None:
        for name, bound in (("rtol", rtol), ("atol", atol)):
            if bound is not None:
                remedy = "Give both rtol and atol, or neither."
                check_type(name, bound, int | float, "a bound on errors", remedy)
        if (rtol is None) != (atol is None):
            raise ValueError(
                f"rtol and atol go together; found rtol={rtol}, atol={atol}. Give both, "
                "or neither."
            )
        check_flag("strides", strides)
        check_flag("empty_strides", empty_strides)
        check_flag("values", values)
        self.rtol, self.atol = rtol, atol
        self.strides, self.values = strides, values
        self.empty_strides = empty_strides
        self.device_type = device_type

    def __call__(self, what: str, expected: Any, actual: Any) -> None:
        """Raises `Disagreement`, which names the leaf as a part of `what`."""
        expected_leaves, expected_form = tree_flatten_with_path(expected)
        actual_leaves, actual_form = tree_flatten_with_path(actual)
        if expected_form != actual_form:
            self._forms(what, expected, actual)
            raise Disagreement(f"{what}: {actual_form}, not {expected_form}")
        for (path, leaf), (_, other) in zip(
            expected_leaves, actual_leaves, strict=True
        ):
            name = what + torch.utils._pytree.keystr(path)
            if isinstance(leaf, torch.Tensor) and isinstance(other, torch.Tensor):
                self._tensors(name, leaf, other)
            elif type(leaf) is not type(other) or (
                self.values and not self._equal(leaf, other)
            ):
                raise Disagreement(f"{name}: {other!r}, not {leaf!r}")

    def _forms(self, what: str, expected: Any, actual: Any) -> None:
        """Raises Disagreement for the first part of a dict whose form differs."""
        if not isinstance(expected, dict) or not isinstance(actual, dict):
            return
        for key in expected.keys() & actual.keys():
            one, other = expected[key], actual[key]
            if tree_structure(one) != tree_structure(other):
                wanted, found = (tree_map(_form, tree) for tree in (one, other))
                raise Disagreement(f"{what}[{key!r}] is {found}, not {wanted}")

    def _tensors(self, name: str, expected: torch.Tensor, actual: torch.Tensor) -> None:
        if self.device_type is not None and actual.device.type != self.device_type:
            raise Disagreement(f"{name} is on {actual.device}, not {self.device_type}")
        for property_ in ("dtype", "shape", "layout", "requires_grad"):
            wanted, found = getattr(expected, property_), getattr(actual, property_)
            if wanted != found:
                raise Disagreement(f"{name} has {property_} {found}, not {wanted}")
        if self.strides and expected.layout is torch.strided:
            wanted, found = (
                _strides_that_matter(tensor, self.empty_strides)
                for tensor in (expected, actual)
            )
            if wanted != found:
                raise Disagreement(
                    f"{name} of shape {tuple(expected.shape)} has strides "
                    f"{actual.stride()}, not {expected.stride()}"
                )
        if not self.values:
            return
        found, wanted = actual.detach().cpu(), expected.detach()
        if wanted.layout is torch.strided and _same(found, wanted):
            return  # most tensors are equal, and assert_close is slow
        try:
            assert_close(
                found,
                wanted,
                rtol=self.rtol,
                atol=self.atol,
                equal_nan=True,
            )
        except AssertionError as difference:
            raise Disagreement(f"{name}: {difference}") from None

    def _equal(self, one: Any, other: Any) -> bool:
        if not isinstance(one, float | complex):
            return bool(one == other)
        rtol, atol = self.rtol, self.atol
        if rtol is None and atol is None:
            rtol, atol = _OF_FLOAT32
        try:
            assert_close(other, one, rtol=rtol, atol=atol, equal_nan=True)
        except AssertionError:
            return False
        return True


def _form(leaf: Any) -> Any:
    return tuple(leaf.shape) if isinstance(leaf, torch.Tensor) else leaf


def _strides_that_matter(tensor: torch.Tensor, of_empty: bool) -> tuple[int, ...]:
    """The strides, without those of dimensions with one element, which address nothing.
    Empty for an empty tensor, unless `of_empty`."""
    if tensor.numel() == 0 and not of_empty:
        return ()
    return tuple(
        stride
        for length, stride in zip(tensor.shape, tensor.stride(), strict=True)
        if length != 1
    )


def _same(one: torch.Tensor, other: torch.Tensor) -> bool:
    if one.is_quantized or one.is_nested:
        return False
    try:
        return torch.equal(one, other)
    except NotImplementedError:  # for complex half, for example
        return False


def outcome(
    function: Callable[..., T], /, *args: Any, **kwargs: Any
) -> tuple[T | None, Exception | None]:
    """The result of the call, or the exception that it raised."""
    check_callable("outcome()", function)
    try:
        return function(*args, **kwargs), None
    except Exception as error:
        return None, error


def compare_errors(
    expected: Exception | None, actual: Exception | None, device: torch.device | str
) -> None:
    """Raises `Disagreement` unless both raised the same type of exception, or none."""
    for error in (expected, actual):
        check_type(
            "compare_errors()",
            error,
            Exception | None,
            "exceptions, or None",
            "Give the second of what outcome() returned.",
        )
    if type(expected) is not type(actual):
        raise Disagreement(
            f"the CPU {_described(expected)}, {device} {_described(actual)}"
        ) from (actual or expected)


def _described(error: Exception | None) -> str:
    if error is None:
        return "gave a result"
    return f"raised {type(error).__name__} ({error})"


def _with_graph(tree: Any) -> list[torch.Tensor]:
    return [
        leaf
        for _, leaf in tree_flatten_with_path(tree)[0]
        if isinstance(leaf, torch.Tensor) and leaf.grad_fn is not None
    ]


def _backward(expected: Any, actual: Any) -> None:
    """Send the same gradients, drawn from a fixed seed, through both graphs."""
    results = _with_graph(expected)
    if not results:
        return
    draw = torch.Generator().manual_seed(0)
    gradients = [
        torch.randn(r.shape, generator=draw, dtype=_drawable(r.dtype)).to(r.dtype)
        for r in results
    ]
    others = _with_graph(actual)
    torch.autograd.backward(results, gradients)
    torch.autograd.backward(
        others, [g.to(o.device) for g, o in zip(gradients, others, strict=True)]
    )


def _drawable(dtype: torch.dtype) -> torch.dtype:
    return torch.complex64 if dtype.is_complex else torch.float32


def _gradients(tree: Any) -> Any:
    return tree_map(
        lambda leaf: (
            leaf.grad if isinstance(leaf, torch.Tensor) and leaf.is_leaf else None
        ),
        tree,
    )

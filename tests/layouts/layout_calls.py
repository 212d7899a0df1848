"""Arguments for ops by their schemas, and results of any layout as plain CPU tensors."""

from collections.abc import Callable, Sequence
from typing import Any

import torch

Tensors = Callable[[str], torch.Tensor]  # an argument's name to a fresh tensor for it

_BY_NAME: dict[str, Any] = {
    "dim": 0, "index": 1, "dim0": 0, "dim1": 1, "upscale_factor": 1, "decimals": 1,
    "start": 0, "length": 2, "end": 2, "step": 1, "size": [4, 4], "k": 2,
    "kernel_size": [2, 2], "stride": [2, 2], "padding": [1, 1], "dilation": [1, 1],
    "output_size": [2, 2], "dims": [0], "groups": 1, "sparse_dim": 2, "dense_dim": 0,
    "threshold": 0.0, "value": 1, "p": 2, "exponent": 2, "rounding_mode": "floor",
    "ord": 2, "axis": 0, "scale": 0.5, "zero_point": 1, "blocksize": [2, 2],
    "mean": 1.0, "std": 0.0, "sorted": True, "reduce": "sum", "dtype": None,
    "interpolation_mode": 0, "padding_mode": 0, "align_corners": False,
    "accumulate": False, "storage_offset": 0, "dimension": 0, "stable": True,
}  # fmt: skip


def argument(given: torch.Argument, tensors: Tensors) -> Any:
    """A value for an argument that is required."""
    kind = str(given.type)
    if kind == "Tensor":
        return tensors(given.name)
    if kind == "Optional[Tensor]":
        return tensors(given.name) if given.name in ("bias", "weight") else None
    if kind.startswith("List[Tensor"):
        return [tensors("self"), tensors("other")]
    if kind.startswith("List[Optional[Tensor"):
        return [tensors("index")]
    if given.name in _BY_NAME:
        value = _BY_NAME[given.name]
        if "List" in kind and not isinstance(value, list):
            return [value]
        return value[0] if kind == "int" and isinstance(value, list) else value
    if kind.startswith("Optional"):
        return None
    if kind in ("number", "int", "float"):
        return 2
    if kind == "bool":
        return False
    raise LookupError(f"no value for {given.name}: {kind}")


def call(name: str, tensors: Tensors, **changes: Any) -> Any:
    """Calls `namespace::op.overload` with fresh arguments; returns its results, or what
    it was called on if it has none."""
    namespace, full = name.split("::")
    packet, _, overload = full.partition(".")
    op = getattr(getattr(getattr(torch.ops, namespace), packet), overload or "default")
    positional, named = [], {}
    for each in op._schema.arguments:
        if each.name in changes:
            value = changes[each.name]
        elif each.has_default_value():
            continue
        else:
            value = argument(each, tensors)
        if each.kwarg_only:
            named[each.name] = value
        else:
            positional.append(value)
    return op(*positional, **named)


def plain(result: Any) -> list[Any]:
    """The parts of a result: plain CPU tensors, and the description of the layout."""
    if isinstance(result, list | tuple):
        return [part for each in result for part in plain(each)]
    if not isinstance(result, torch.Tensor):
        return [result]
    kind = (str(result.layout), str(result.dtype), result.requires_grad)
    result = result.detach()
    if result.layout == torch.sparse_coo:
        parts: Sequence[torch.Tensor] = (result._indices(), result._values())
        about = (*kind, result.is_coalesced(), tuple(result.shape))
    elif result.layout in (torch.sparse_csr, torch.sparse_bsr):
        parts = (result.crow_indices(), result.col_indices(), result.values())
        about = (*kind, tuple(result.shape))
    elif result.layout in (torch.sparse_csc, torch.sparse_bsc):
        parts = (result.ccol_indices(), result.row_indices(), result.values())
        about = (*kind, tuple(result.shape))
    elif result.is_nested:
        parts = result.unbind()
        sizes = (result._nested_tensor_size(), result._nested_tensor_strides())
        about = (*kind, *(tuple(each.flatten().tolist()) for each in sizes))
    elif result.is_quantized:
        parts = (result.int_repr(),)
        about = (*kind, str(result.qscheme()), tuple(result.shape))
        if result.qscheme() == torch.per_tensor_affine:
            about = (*about, result.q_scale(), result.q_zero_point())
        else:
            parts = (*parts, result.q_per_channel_scales())
    else:
        return [kind, result.cpu()]
    return [about, *(part.cpu() for part in parts)]


def device_types(result: Any) -> set[str]:
    """Of the tensors in a result."""
    if isinstance(result, list | tuple):
        return {kind for each in result for kind in device_types(each)}
    return {result.device.type} if isinstance(result, torch.Tensor) else set()


def ops_of(key: str) -> list[str]:
    """The ops of PyTorch that have a kernel for a dispatch key."""
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    names = torch._C._dispatch_get_all_op_names()
    return sorted(
        name for name in names if name.startswith("aten::") and has(name, key)
    )


def differences(
    names: Sequence[str],
    run: Callable[[str, torch.device], Any],
    xpu: torch.device,
    autograds: bool = False,
) -> tuple[dict[str, str], list[str]]:
    """What is not on xpu as on the CPU, by name; and the names that the CPU computed.

    What the CPU refuses, xpu has to refuse in words, not by an internal assert: but
    for errors that are the CPU's word for word, where they are autograd's own.
    """
    wrong, computed = {}, []
    for name in names:
        expected = _outcome(run, name, torch.device("cpu"))
        found = _outcome(run, name, xpu)
        if isinstance(expected, Exception):
            if not isinstance(found, Exception):
                wrong[name] = f"the CPU refuses: {expected}"
            elif autograds and str(found) == str(expected):
                continue
            elif "INTERNAL ASSERT" in str(found) or "Internal error" in str(found):
                wrong[name] = str(found)
            continue
        computed.append(name)
        if isinstance(found, Exception):
            wrong[name] = f"{type(found).__name__}: {found}"
            continue
        try:
            assert_same(found, expected)
        except AssertionError as error:
            wrong[name] = str(error)
    return wrong, computed


def _outcome(
    run: Callable[[str, torch.device], Any], name: str, device: torch.device
) -> Any:
    try:
        return plain(run(name, device))
    except Exception as error:
        return error.with_traceback(None)


def assert_same(found: list[Any], expected: list[Any]) -> None:
    assert len(found) == len(expected)
    for mine, theirs in zip(found, expected, strict=True):
        if isinstance(theirs, torch.Tensor):
            assert mine.shape == theirs.shape
            torch.testing.assert_close(mine, theirs, equal_nan=True)
        else:
            assert mine == theirs

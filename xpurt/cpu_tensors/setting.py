"""Which kernels compute ordinary CPU tensors."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from xpurt import _C, config, mapping
from xpurt.arguments import check_type
from xpurt.errors import MappingError, XpurtError, nearest

_MODES: Final = ("native", "sycl", "auto")

# CPU memory of at least so many bytes comes from xpurt's cache under "sycl" and "auto".
# Smaller blocks stay with the system's allocator, which keeps them itself.
_CACHED_FROM_BYTES: Final = 1 << 20
_NEVER_CACHED: Final = 2**64 - 1


def set_cpu_kernels(mode: str) -> None:
    """Sets which kernels compute ordinary CPU tensors, for the whole process.

    mode: "native", the default: PyTorch's, as if xpurt weren't there. "sycl": xpurt's
        kernels and oneDNN's primitives, for each op that has one and each call that it
        accepts. "auto": these for the ops of a table, where they were measured to be
        faster; large CPU memory comes from xpurt's cache. Nothing is measured with
        XPURT_LEARN=0: PyTorch's kernels compute then.

    The tensors stay ordinary CPU tensors: nothing is copied, and results, errors and
    gradients are PyTorch's, up to rounding. An op waits for its kernel, which runs on
    the current stream of the ordinal of the CPU. `op_report` and `explain` show what ran
    so, as ops on "cpu".

    Large results are memory of that ordinal: they count as memory of xpu, and hold the
    mapping while they live. If the mapping is changed to one without the CPU, a warning
    says that "native" is in force again. So it is in a forked process.

    Raises ValueError for another name, TypeError if `mode` is no str, and MappingError
    unless some ordinal of the mapping is one CPU device alone.
    """
    check_type(
        "set_cpu_kernels()", mode, str, "a name", 'Give "auto", "sycl" or "native".'
    )
    if mode not in _MODES:
        near = nearest(mode, _MODES)
        hint = f' Did you mean "{near}"?' if near else ""
        raise ValueError(
            f'CPU kernels "{mode}" are unknown; they are one of "native", "sycl", '
            f'"auto".{hint}'
        )
    if mode == "native":
        _C.set_cpu_kernels(mode, [], _NEVER_CACHED)
        return
    placement = mapping.current_placement()
    if not _has_ordinal_of_host():
        raise MappingError(
            f'CPU kernels "{mode}" want an ordinal that is one CPU device, which '
            f"computes in the host's memory; mapping {placement.mapping} has "
            f'{_shown(placement)}. Call xpurt.set_xpu_mapping("CPU") before, or keep '
            '"native".'
        )
    from xpurt.cpu_tensors import table

    ops = table.every_op() if mode == "sycl" else table.ops_by_cost()
    _C.set_cpu_kernels(mode, ops, _CACHED_FROM_BYTES)


def get_cpu_kernels() -> str:
    """The kernels of CPU tensors now: "native", "sycl" or "auto"."""
    return _C.cpu_kernels()


@contextmanager
def cpu_kernels(mode: str) -> Iterator[None]:
    """`set_cpu_kernels` for the length of a ``with``, for the whole process."""
    before = get_cpu_kernels()
    set_cpu_kernels(mode)
    try:
        yield
    finally:
        if get_cpu_kernels() != before:
            set_cpu_kernels(before)


def follow_mapping() -> None:
    """Called once: returns to PyTorch's kernels if a new mapping has no CPU ordinal."""
    mapping.on_change(_check_mapping)


def enable_at_import() -> None:
    """Applies ``XPURT_CPU_KERNELS``. Never raises: a warning says why it can't."""
    try:
        mode = config.cpu_kernels_at_import()
        if mode != "native":
            set_cpu_kernels(mode)
    except XpurtError as error:
        with suppress(Warning):  # of a process that makes warnings errors
            warnings.warn(
                f"CPU tensors keep PyTorch's kernels, against XPURT_CPU_KERNELS: {error}",
                RuntimeWarning,
                stacklevel=2,
            )


def _check_mapping() -> None:
    mode = get_cpu_kernels()
    if mode == "native" or _has_ordinal_of_host():
        return
    set_cpu_kernels("native")
    warnings.warn(
        f'CPU kernels "{mode}" became "native": no ordinal of the new mapping is one CPU '
        "device. Set them again under a mapping that has one.",
        RuntimeWarning,
        stacklevel=2,
    )


def _has_ordinal_of_host() -> bool:
    mapping.current_placement()
    _C.open_placement()  # else the first use of a device opens it
    return _C.ordinal_of_host() >= 0


def _shown(placement: mapping.Placement) -> str:
    return "; ".join(
        f"xpu:{index}: {', '.join(device.name for device in ordinal)}"
        for index, ordinal in enumerate(placement.ordinals)
    )

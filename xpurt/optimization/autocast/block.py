"""`xpurt.autocast`: torch.autocast with a layout."""

import functools
import inspect
import sys
from collections.abc import Callable, Mapping
from typing import Any, Final

import torch

from xpurt import _layouts
from xpurt.errors import nearest
from xpurt.optimization.autocast import open_block

_DEVICE_TYPES: Final = ("cpu", "xpu")
_DTYPES: Final = (torch.bfloat16, torch.float16, torch.float32, torch.int8)


class autocast(torch.autocast):
    """A block, or a decorator, in which convolutions and matrix products compute in
    `dtype`, as in torch.autocast, and convolutions in the layout that oneDNN computes
    fastest.

    device_type: "cpu" or "xpu"; None, the default, is both: an op takes the type of its
    operands' device.
    dtype: torch.bfloat16 or torch.float16; by default that of torch.autocast for the
    device. torch.float32 changes the layout alone. torch.int8 is for inference: linear
    layers and convolutions compute in int8 as those of `xpurt.quantize(model, "dynamic")`,
    with weights that are quantized once per version. Their results have the type of the
    input. Where a gradient is wanted, and in all other ops, types stay as they are.
    layout: torch.mkldnn (also written torch._mkldnn), or torch.strided, which is
    torch.autocast. With torch.mkldnn images go from op to op in channels last, and weights
    are converted, and packed where no gradient is wanted, once per version. What the
    program looks at is plain: views, strides, NumPy arrays, and what it holds when the
    outermost block ends. A compiled program chooses its own layouts.
    enabled: whether the block does anything.
    cache_enabled: whether converted weights are kept; by default as in torch.autocast.

    Raises ValueError for any other device type, dtype or layout, and RuntimeError for
    torch.int8 in a compiled program.
    """

    def __init__(
        self,
        device_type: str | None = None,
        dtype: torch.dtype | None = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
        *,
        layout: torch.layout = torch.strided,
    ) -> None:
        _check(device_type, dtype, layout)
        self._arguments = (device_type, dtype, enabled, cache_enabled)
        self._layout = layout
        self._has_layout = enabled and layout is torch._mkldnn  # type: ignore[attr-defined]
        self._has_int8 = enabled and dtype == torch.int8
        # PyTorch's autocast has no float32 and no int8; not enabled, it leaves all dtypes
        # as they are.
        casts = enabled and dtype not in (torch.float32, torch.int8)
        given = dtype if casts else None, casts, cache_enabled
        first, *others = _DEVICE_TYPES if device_type is None else (device_type,)
        super().__init__(first, *given)
        self._others = [autocast(each, *given) for each in others]

    @staticmethod
    def add_to_torch() -> None:
        """Makes ``torch.autocast`` take a layout, and need no device type, as here. Its
        calls without a layout and with a device type stay PyTorch's. Nothing else does so;
        a second call does nothing.

        Raises RuntimeError if PyTorch's own takes a layout.
        """
        init = torch.autocast.__init__
        if init is _init_of_torch:
            return
        if "layout" in inspect.signature(init).parameters:
            raise RuntimeError(
                f"torch.autocast takes a layout already, by {init!r}. Call xpurt.autocast."
            )
        setattr(torch.autocast, "__init__", _init_of_torch)  # noqa: B010

    @staticmethod
    def register_op(
        op: str,
        *,
        dtypes: Mapping[str, torch.dtype | str] | None = None,
        layouts: Mapping[str, torch.layout] | None = None,
    ) -> None:
        """Registers which operands an op of another library gets within a block with a
        layout or in int8, once per op::

            xpurt.autocast.register_op(
                "mylib::conv",
                dtypes={"images": "block", "weight": "block", "scale": torch.float32},
                layouts={"images": torch.mkldnn},
            )

        op: "library::op" or "library::op.overload".
        dtypes: by the argument's name; "block" is that of torch.autocast. Only operands of
        floating point are cast, and none of float64.
        layouts: torch.mkldnn gives channels last to a tensor of four or five dimensions.
        All others are plain, as are those of ops that are not registered. A new result in
        channels last is treated as one of PyTorch's convolutions.

        Raises ValueError if there is no such op or argument, for another dtype or layout,
        and if the op is registered already.
        """
        dtypes, layouts = dtypes or {}, layouts or {}
        for each in dtypes.values():
            if each != "block" and not isinstance(each, torch.dtype):
                raise ValueError(
                    f'an operand of {op} has a torch.dtype or "block"; found {each!r}'
                )
        for layout in layouts.values():
            _check(None, None, layout)
        open_block.register()
        mkldnn = torch._mkldnn  # type: ignore[attr-defined]
        _layouts.register_operands(
            op,
            {
                name: (dtypes.get(name), layouts.get(name) is mkldnn)
                for name in {*dtypes, *layouts}
            },
        )

    def __enter__(self) -> "autocast":
        super().__enter__()  # type: ignore[no-untyped-call]
        for each in self._others:
            each.__enter__()
        if not torch.compiler.is_compiling():
            self._begin_layout()
        elif self._has_int8:
            raise RuntimeError(open_block.NOT_COMPILED)
        return self

    def __exit__(self, *error: Any) -> None:
        if not torch.compiler.is_compiling():
            self._end_layout()
        for each in self._others:
            each.__exit__(*error)
        super().__exit__(*error)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        if not callable(function):
            raise TypeError(
                f"autocast()(function) takes a function; found {type(function).__name__}. "
                "To use it as a block write `with xpurt.autocast(...):`"
            )
        arguments, layout = self._arguments, self._layout

        @functools.wraps(function)
        def in_block(*args: Any, **kwargs: Any) -> Any:
            # A block of its own: threads and recursive calls share the decorator.
            with autocast(*arguments, layout=layout):
                return function(*args, **kwargs)

        return in_block

    def _begin_layout(self) -> None:
        if self._has_layout or self._has_int8 or _is_in_block():
            open_block.begin(self._arguments[0], self._has_layout, self._has_int8)

    def _end_layout(self) -> None:
        if self._has_layout or self._has_int8 or _is_in_block():
            open_block.end()


def _is_in_block() -> bool:
    """Whether this thread is in a block with a layout, or in int8. The library is loaded by
    the first one."""
    layouts = sys.modules.get("xpurt._layouts")
    return layouts is not None and layouts.open_blocks() > 0


_pytorchs_init: Final = torch.autocast.__init__


def _init_of_torch(
    self: torch.autocast,
    device_type: str | None = None,
    dtype: torch.dtype | None = None,
    enabled: bool = True,
    cache_enabled: bool | None = None,
    *,
    layout: torch.layout | None = None,
) -> None:
    """That of `torch.autocast` after `add_to_torch`."""
    if device_type is not None and layout is None:
        _pytorchs_init(self, device_type, dtype, enabled, cache_enabled)
        return
    self.__class__ = autocast
    assert isinstance(self, autocast)
    autocast.__init__(
        self, device_type, dtype, enabled, cache_enabled, layout=layout or torch.strided
    )


def _check(device_type: Any, dtype: Any, layout: Any) -> None:
    if device_type not in (None, *_DEVICE_TYPES):
        near = nearest(str(device_type), _DEVICE_TYPES)
        meant = f' Did you mean "{near}"?' if near else ""
        raise ValueError(
            f'xpurt.autocast takes the device types "cpu" and "xpu"; found '
            f"{device_type!r}.{meant} For other devices use torch.autocast."
        )
    if dtype is not None and dtype not in _DTYPES:
        raise ValueError(
            "xpurt.autocast takes torch.bfloat16, torch.float16, torch.float32 or "
            f"torch.int8; found {dtype}. Leave the dtype out for the default of the device."
        )
    if layout not in (torch.strided, torch._mkldnn):  # type: ignore[attr-defined]
        raise ValueError(
            "xpurt.autocast takes the layouts torch.mkldnn and torch.strided; found "
            f"{layout}. Convert tensors to other layouts yourself, outside of autocast."
        )

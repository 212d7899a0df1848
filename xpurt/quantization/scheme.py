"""What is asked of `quantize`, checked, and which layers it can have."""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import nn

from xpurt.arguments import check_type, shown
from xpurt.errors import nearest
from xpurt.quantization.activations import OBSERVERS
from xpurt.quantization.layers import padding_of

KINDS = ("dynamic", "static", "int8_weight_only", "int4_weight_only")
CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)

_TYPES = (torch.float32, torch.bfloat16, torch.float16)


@dataclass(frozen=True)
class Scheme:
    """The arguments of `quantize`, which describes them."""

    kind: str
    group_size: int
    smooth_quant: float | None
    observer: str
    skip: frozenset[str]

    @property
    def with_activations(self) -> bool:
        return self.kind in ("dynamic", "static")

    def needs_calibration(self) -> str:
        """For what, or ""."""
        if self.kind == "static":
            return 'kind "static"'
        return "" if self.smooth_quant is None else "smooth_quant="

    def reason_to_keep(self, name: str, layer: nn.Module) -> str:
        """Why a layer stays as it is, or ""."""
        if name in self.skip:
            return "named in skip="
        kind = "Linear" if isinstance(layer, nn.Linear) else "convolution"
        if type(layer) not in (nn.Linear, *CONVOLUTIONS):
            return f"a subclass of {kind}, which may compute something else"
        if kind == "convolution" and not self.with_activations:
            return "weight-only quantization is for linear layers"
        return self._reason_of_weight(layer) or self._reason_of_sizes(layer)

    def _reason_of_weight(self, layer: nn.Module) -> str:
        weight = layer.weight
        assert isinstance(weight, torch.Tensor)
        if layer._forward_hooks or layer._forward_pre_hooks:
            return "it has hooks, which would be lost"
        if weight.dtype not in _TYPES:
            return f"its weight is {weight.dtype}"
        if weight.numel() == 0:
            return "its weight is empty"
        if not bool(weight.detach().isfinite().all()):
            return "its weight has values that are not finite"
        return ""

    def _reason_of_sizes(self, layer: nn.Module) -> str:
        if isinstance(layer, CONVOLUTIONS):
            if layer.padding_mode != "zeros":
                return f"its padding_mode is {layer.padding_mode!r}"
            try:
                padding_of(layer)
            except ValueError as error:
                return str(error)
        elif self.kind == "int4_weight_only":
            assert isinstance(layer, nn.Linear)
            if layer.in_features % self.group_size:
                return (
                    f"its {layer.in_features} inputs are not a multiple of "
                    f"group_size={self.group_size}"
                )
        return ""


def checked(
    kind: object,
    group_size: object,
    smooth_quant: object,
    observer: object,
    skip: object,
) -> Scheme:
    """The scheme of these arguments. Raises TypeError and ValueError: see `quantize`."""
    _check_word("kind", kind, KINDS)
    _check_word("observer", observer, tuple(OBSERVERS))
    check_type(
        "quantize(group_size=)", group_size, int, "a number of inputs", "Give 32 or 64."
    )
    assert isinstance(kind, str)
    assert isinstance(group_size, int)
    assert isinstance(observer, str)
    if group_size < 16 or group_size % 16:
        raise ValueError(
            f"quantize(group_size=) wants a multiple of 16; found {group_size}. Give 32 "
            "or 64."
        )
    if smooth_quant is not None:
        check_type(
            "quantize(smooth_quant=)",
            smooth_quant,
            int | float,
            "a number from 0 to 1",
            "Give 0.5, or nothing.",
        )
        assert isinstance(smooth_quant, int | float)
        if not 0 <= smooth_quant <= 1:
            raise ValueError(
                f"quantize(smooth_quant=) wants a number from 0 to 1; found "
                f"{smooth_quant}. Give 0.5."
            )
        if kind not in ("dynamic", "static"):
            raise ValueError(
                f'quantize(smooth_quant=) is for quantized activations; kind "{kind}" '
                'leaves them as they are. Give kind "dynamic" or "static".'
            )
    if isinstance(skip, str) or not isinstance(skip, Iterable):
        raise TypeError(
            f"quantize(skip=) wants names of layers; found {shown(skip)}. Give a list, "
            "as of named_modules()."
        )
    return Scheme(
        kind,
        group_size,
        None if smooth_quant is None else float(smooth_quant),
        observer,
        frozenset(skip),
    )


def _check_word(argument: str, found: object, known: tuple[str, ...]) -> None:
    if found in known:
        return
    choices = ", ".join(f'"{word}"' for word in known)
    near = nearest(found, known) if isinstance(found, str) else ""
    hint = f'Did you mean "{near}"?' if near else "Give one of them."
    error = ValueError if isinstance(found, str) else TypeError
    raise error(f"quantize({argument}=) wants {choices}; found {shown(found)}. {hint}")

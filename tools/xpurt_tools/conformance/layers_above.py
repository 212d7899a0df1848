"""The layers above eager mode that a program can be run through."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import nn

import xpurt
import xpurt.lazy
from xpurt.optimization.requested_form import optimized
from xpurt.quantization.in_plain_ops import QuantizedLayer, in_plain_ops, weight_of
from xpurt.testing import Disagreement, outcome
from xpurt_tools.conformance.check_module import Made
from xpurt_tools.conformance.databases import Kind
from xpurt_tools.conformance.fused_forms import Fused, fused_forms
from xpurt_tools.conformance.inputs import moved
from xpurt_tools.conformance.programs import Programs
from xpurt_tools.conformance.trial import CPU

Call = Callable[..., Any]
MODELS_TOO: Final[tuple[Kind, ...]] = ("module", "model")
OPS_TOO: Final[tuple[Kind, ...]] = ("module", "op")
ALL: Final[tuple[Kind, ...]] = ("module", "op", "model")
Block = contextlib.AbstractContextManager[Any]


def _optimized(module: nn.Module) -> Call:
    return _in_optimized_form(xpurt.optimize(module, inplace=True))


def _in_optimized_form(model: nn.Module) -> Call:
    def call(*args: Any, **kwargs: Any) -> Any:
        with optimized():  # also where it takes longer
            return model(*args, **kwargs)

    return call


def _compiled(module: nn.Module) -> Call:
    torch._dynamo.reset()
    call: Call = torch.compile(module)
    return call


def _itself(given: Any) -> Any:
    return given


def _nothing(device_type: str) -> Block:
    return contextlib.nullcontext()


@contextlib.contextmanager
def _lazily(device_type: str) -> Iterator[None]:
    xpurt.lazy.init()
    with xpurt.lazy.mode():
        yield


def _by_rows(device_type: str) -> Block:
    return xpurt.cpu_kernels("sycl")


@dataclass(frozen=True, slots=True)
class Layer:
    """One form of a layer.

    made: the module's call through the layer.
    of: the same of a copy of a module that `made` had.
    within: what the call and its backward are made in, by the type of the device.
    form: its name, if the layer has several.
    reference: the module that eager mode runs.
    beside: what eager mode runs it in.
    kinds: what of the databases it is for.
    programs: those of a sample, from those that are run through other layers.
    takes: whether it does something with the module.
    devices: the types of those whose tensors it is for.
    trains: it is for training mode and gradients, too.
    dtype: what it computes float32 in, if that is narrower.
    of_pytorch: it has limits of PyTorch's own: what fails for CPU tensors, too, is no
        failure of xpu."""

    made: Callable[[nn.Module], Call] = _itself
    of: Callable[[nn.Module], Call] = _itself
    within: Callable[[str], Block] = _nothing
    form: str = ""
    reference: Callable[[nn.Module], nn.Module] = _itself
    beside: Callable[[str], Block] = _nothing
    kinds: tuple[Kind, ...] = ("module",)
    programs: Callable[[Programs], Programs] = _itself
    takes: Callable[[nn.Module], bool] = lambda module: True
    devices: tuple[str, ...] = ("xpu",)
    trains: bool = True
    dtype: torch.dtype | None = None
    of_pytorch: bool = False

    @property
    def is_frozen(self) -> bool:
        """Whether eager mode runs something else than the module: changes of the module
        between calls are not seen by it."""
        return self.reference is not _itself


def _quantized(kind: str) -> Layer:
    def quantized(module: nn.Module) -> nn.Module:
        return xpurt.quantize(module, kind, group_size=16)

    def made(module: nn.Module) -> nn.Module:
        found = quantized(module)
        _check_weights(module, found)
        return found

    def takes(module: nn.Module) -> bool:
        # A ValueError: no layer of it can be quantized.
        return not isinstance(outcome(quantized, module)[1], ValueError)

    return Layer(
        made,
        form=kind,
        reference=lambda module: in_plain_ops(quantized(module)),
        kinds=MODELS_TOO if kind.endswith("weight_only") else ("module",),
        takes=takes,
        devices=("xpu", "cpu"),
        trains=False,
    )


def _check_weights(module: nn.Module, quantized: nn.Module) -> None:
    """Raises Disagreement if a weight is further off than half a step. Eager mode has the
    weights after quantization, so it would not see that."""
    for name, layer in quantized.named_modules():
        if isinstance(layer, QuantizedLayer):
            original: Any = module.get_submodule(name).weight
            error = (weight_of(layer) - original.detach()).abs()
            if float(error.max()) > 0.501 * float(layer.weight_scale.max()):
                raise Disagreement(f"a weight of {name!r} is off by {error.max():.2g}")


def _calibrated(programs: Programs) -> Programs:
    """The same programs, quantized by their arguments."""

    def found(made: Made) -> Iterator[tuple[str, Made]]:
        for name, (module, args, kwargs) in programs(made):
            kind = "static"
            quantized, _ = outcome(
                xpurt.quantize, module, kind, calibration=[moved(args, CPU)]
            )
            if quantized is not None:
                yield name, (quantized, args, kwargs)

    return found


def _autocast(dtype: torch.dtype, layout: torch.layout = torch.strided) -> Layer:
    name = str(dtype).removeprefix("torch.")
    narrow = dtype is not torch.float32

    def within(device_type: str) -> Block:
        return xpurt.autocast(device_type, dtype=dtype, layout=layout)

    def beside(device_type: str) -> Block:
        return torch.autocast(device_type, dtype=dtype, enabled=narrow)

    return Layer(
        within=within,
        form=name,
        beside=beside,
        kinds=ALL,
        devices=("xpu", "cpu"),
        dtype=dtype if narrow else None,
    )


def _in_int8(device_type: str) -> Block:
    return xpurt.autocast(device_type, dtype=torch.int8)


def _fused(module: nn.Module) -> Call:
    assert isinstance(module, Fused)
    return module.fused


LAYERS: Final[dict[str, tuple[Layer, ...]]] = {
    "optimize": (
        Layer(
            _optimized,
            _in_optimized_form,
            kinds=MODELS_TOO,
            devices=("xpu", "cpu"),
            trains=False,
        ),
    ),
    "quantize": (
        _quantized("dynamic"),
        _quantized("int8_weight_only"),
        _quantized("int4_weight_only"),
        Layer(
            form="static",
            reference=in_plain_ops,
            programs=_calibrated,
            devices=("xpu", "cpu"),
            trains=False,
        ),
    ),
    "compile": (Layer(_compiled, _compiled, kinds=ALL, of_pytorch=True),),
    "lazy": (Layer(within=_lazily, kinds=ALL),),
    "cpu_kernels": (Layer(within=_by_rows, kinds=OPS_TOO, devices=("cpu",)),),
    "fused": (Layer(_fused, programs=lambda _: fused_forms, devices=("xpu", "cpu")),),
    "autocast": (
        _autocast(torch.bfloat16, torch.mkldnn),  # type: ignore[attr-defined]
        _autocast(torch.float32, torch.mkldnn),  # type: ignore[attr-defined]
        Layer(
            within=_in_int8,
            form="int8",
            reference=_quantized("dynamic").reference,
            takes=_quantized("dynamic").takes,
            devices=("xpu", "cpu"),
            trains=False,
        ),
    ),
}

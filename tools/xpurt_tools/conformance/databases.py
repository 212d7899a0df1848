"""PyTorch's databases of ops, modules and optimizers, with a common type of entry."""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import torch

from xpurt_tools.conformance.extras import needs

Kind = Literal["op", "module", "optimizer", "model"]

_INTERNAL = "torch.testing._internal."

GPUS = ("cuda", "xpu")  # PyTorch lists their dtypes apart from the CPU's


@dataclass(frozen=True, slots=True)
class Entry:
    """One op, module or optimizer.

    name: unique: "linalg.svd" or "sub_outer.variant"; modules are "nn.Linear",
        optimizers "optim.Adam".
    category: its row in the summary.
    info: PyTorch's own record: OpInfo, ModuleInfo or OptimizerInfo.
    dtypes: those that PyTorch lists for the CPU.
    gpu_dtypes: those that it lists for CUDA or XPU, but not for the CPU.
    """

    kind: Kind
    name: str
    category: str
    info: Any
    dtypes: frozenset[torch.dtype]
    gpu_dtypes: frozenset[torch.dtype] = frozenset()


@cache
def load(database: str) -> dict[str, Entry]:
    """The entries by name, from the function `database`, "module:function".

    Raises MissingExtra if a package that PyTorch's databases import is missing.
    """
    module, _, function = database.partition(":")
    source: Callable[[], list[Entry]] = getattr(
        importlib.import_module(module), function
    )
    return {entry.name: entry for entry in source()}


def of_pytorch() -> list[Entry]:
    """All entries: `op_db`, `module_db` and `optim_db`."""
    ops_module = needs(_INTERNAL + "common_methods_invocations")
    # The wrapper sets the same seed around each call of a random op. That would hide
    # that the op is random, and that a seed of ours changes its result.
    ops_module.wrapper_set_seed = _called_as_it_is  # type: ignore[attr-defined]
    ops = ops_module.op_db
    modules = needs(_INTERNAL + "common_modules").module_db
    optimizers = needs(_INTERNAL + "common_optimizers").optim_db
    return [
        *_ops(ops),
        *map(_module, modules),
        *map(_optimizer, optimizers),
    ]


def _called_as_it_is(op: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    return op(*args, **kwargs)


def _ops(infos: list[Any]) -> list[Entry]:
    found: dict[str, Entry] = {}
    for info in infos:
        name = info.full_name
        # A name that occurs twice gets a number, so that each can be selected.
        while name in found:
            stem, _, number = name.partition("#")
            name = f"{stem}#{int(number or 1) + 1}"
        dtypes = frozenset(info.supported_dtypes("cpu"))
        on_gpus = frozenset().union(*map(info.supported_dtypes, GPUS)) - dtypes
        found[name] = Entry("op", name, _category(info), info, dtypes, on_gpus)
    return list(found.values())


_BY_PREFIX = {
    "nn.functional": "nn.functional",
    "linalg": "linalg",
    "fft": "fft",
    "sparse": "sparse",
    "masked": "masked",
    "special": "special functions",
    "signal": "windows",
}
_BY_CLASS = {
    "UnaryUfuncInfo": "pointwise",
    "BinaryUfuncInfo": "pointwise",
    "ReductionOpInfo": "reduction",
    "SpectralFuncInfo": "fft",
}


def _category(info: Any) -> str:
    for prefix, category in _BY_PREFIX.items():
        if info.name.startswith(prefix + "."):
            return category
    return _BY_CLASS.get(type(info).__name__, "shape, index and other")


def _module(info: Any) -> Entry:
    dtypes = frozenset(info.dtypes)
    return Entry("module", info.name, "modules", info, dtypes)


# Optimizers do the same in every floating type; PyTorch's database leaves the types to
# the test.
_OPTIMIZED = frozenset({torch.float32, torch.float64, torch.bfloat16, torch.float16})


def _optimizer(info: Any) -> Entry:
    dtypes = _OPTIMIZED | ({torch.complex64} if info.supports_complex else set())
    return Entry("optimizer", f"optim.{info.name}", "optimizers", info, dtypes)

"""Whose kernel the dispatcher calls for each op and key of a device type.

PyTorch's dispatcher tells of each kernel where it was registered. Those of PyTorch's
sources and of xpurt's are known; all others are the vendor's.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import torch
from torch._ops import OpOverload

# The layouts and the functionalities of a device type, each before the type's own name.
PREFIXES: Final = (
    *("", "Sparse", "SparseCsr", "Quantized", "NestedTensor"),
    *("Autograd", "Autocast"),
)
# By a part of the place.
_OWNERS: Final = {
    "csrc/prototype/prototype_calls.cpp": "vendor",  # counts, and calls the vendor's
    "csrc/python/prototype/derivative.cpp": "vendor",
    "csrc/prototype/": "alias",
    "/torch/csrc/": "PyTorch",
    "/aten/src/": "PyTorch",
    str(Path(torch.__file__).parent): "PyTorch",
}
# By how the dispatcher found it: these are registered for all device types.
_COMMON: Final = {
    "math kernel": "composite",
    "default backend kernel": "composite",
    "autograd kernel": "PyTorch",
}
_LINE: Final = re.compile(r"(\w+): (fallthrough )?registered at (.*?) \[([\w ]+)\]")


@dataclass(frozen=True, slots=True)
class KernelRow:
    """One op at one dispatch key.

    op: "aten::relu". key: "SparseIPU". whose: "vendor"; "alias": the device behind
    computes; "composite": for all devices, made of other ops; "PyTorch": another one of
    PyTorch's, as its derivatives; "none": no kernel at this key.
    """

    op: str
    key: str
    whose: str


def key_name(type: str) -> str:
    """The dispatch key of a device type, "IPU"."""
    return "PrivateUse1" if type == "privateuseone" else type.upper()


def rows_of(type: str, namespaces: frozenset[str] | None = None) -> Iterator[KernelRow]:
    """A row per op and key that the type has. type: as PyTorch's enum has it, "ipu" or
    "privateuseone". namespaces: of the ops; None: all."""
    keys = [prefix + key_name(type) for prefix in PREFIXES]
    for name in sorted(torch._C._dispatch_get_all_op_names()):
        if namespaces is not None and name.partition("::")[0] not in namespaces:
            continue
        found = {
            line[1]: line
            for text in torch._C._dispatch_dump_table(name).splitlines()
            if (line := _LINE.match(text))
        }
        for key in keys:
            yield KernelRow(name, key, _whose(found.get(key)))


def vendor_ops(type: str) -> frozenset[OpOverload]:
    """The ops that have a kernel of the vendor at the type's own key."""
    key = key_name(type)
    return frozenset(
        _overload(row.op)
        for row in rows_of(type)
        if row.key == key and row.whose == "vendor"
    )


def _whose(line: "re.Match[str] | None") -> str:
    if line is None:
        return "none"
    _, passes_on, place, kind = line.groups()
    if passes_on:
        return "none"
    if kind in _COMMON:
        return _COMMON[kind]
    return next((who for part, who in _OWNERS.items() if part in place), "vendor")


def _overload(name: str) -> OpOverload:
    namespace, _, rest = name.partition("::")
    packet, _, overload = rest.partition(".")
    found = getattr(getattr(torch.ops, namespace), packet)
    made: OpOverload = getattr(found, overload or "default")
    return made

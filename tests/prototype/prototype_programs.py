"""Programs that make a prototype device, each in a process of its own: a prototype is made
for the rest of the process.
"""

import pytest
from own_process import output

START = """
import copy, io, torch, warnings, xpurt
from torch import nn
warnings.simplefilter("ignore")
name, memory = {name!r}, {memory!r}
made = xpurt.prototype_device(name, memory=memory, devices={devices})
"""
KINDS = [
    ("ipu", "host"),
    ("ipu", "xpu"),
    ("hpu", "host"),
    ("mtia", "host"),
    ("maia", "host"),
    ("xla", "host"),
    ("mydevice", "host"),
    ("mydevice", "xpu"),
    # SYCL devices: memory that the host can read, and memory that it can't.
    ("ipu", "cpu"),
    ("ipu", "gpu"),
    ("mtia", "cpu"),
    ("mydevice", "cpu"),
    ("mydevice", "gpu"),
]
all_kinds = pytest.mark.parametrize(("name", "memory"), KINDS)

# Each kind of memory once, and four of the names.
_FEW = [("hpu", "host"), ("mtia", "cpu"), ("ipu", "xpu"), ("mydevice", "gpu")]
few_kinds = pytest.mark.parametrize(
    ("name", "memory"),
    [
        each if each in _FEW else pytest.param(*each, marks=pytest.mark.slow)
        for each in KINDS
    ],
)


def run(
    code: str,
    name: str,
    memory: str,
    devices: int = 1,
    compiles: bool = False,
) -> str:
    """The output of a program that begins with START. compiles: as `own_process.run`."""
    start = START.format(name=name, memory=memory, devices=devices)
    options = environment_of(memory, devices)
    return output(start + code, timeout=120, compiles=compiles, **options)


def environment_of(memory: str, devices: int = 1) -> dict[str, str]:
    """The virtual GPU, whose memory the host can't read, is that of the memory "gpu".
    Several devices over xpu need as many ordinals."""
    if memory == "xpu" and devices > 1:
        return {"XPURT_MAPPING": "explicit"}
    return {"XPURT_VIRTUAL_GPU": "strict"} if memory == "gpu" else {}

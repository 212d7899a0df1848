"""A mapping that is named under a launcher: the rank's part of it is behind each ordinal,
however it is named. The cases are those of the other scripts for ranks."""

import functools
from pathlib import Path

import attention
import collectives
import compiled
import ordering
import pytest
import training
from own_process import output
from rank_processes import Found, run
from ranks import IN_PROGRAM, RANKS, cases

import xpurt

FOLDER = Path(__file__).parent
UNDER_A_LAUNCHER = {"LOCAL_WORLD_SIZE": str(RANKS)}

# Of each way of naming a mapping: the variable, and the argument of set_xpu_mapping().
WAYS = {
    "none": ("", ""),
    "variable CPU": ("CPU", ""),
    "variable GPU": ("GPU", ""),
    "variable AUTO": ("AUTO", ""),
    "program CPU": ("", "CPU"),
    "program GPU": ("", "GPU"),
    "program AUTO": ("", "AUTO"),
}
# Of a single rank by itself, these don't differ from the others.
ALIKE = ("variable CPU", "variable GPU", "program AUTO")
SCRIPTS = {
    "training.py": training,
    "collectives.py": collectives,
    "ordering.py": ordering,
    "attention.py": attention,
    "compiled.py": compiled,
}
# A script takes 10 s and more: by default one runs, with some of its cases.
BY_DEFAULT = ("ddp_with_options", "fsdp2", "tensor_parallel", "pipeline", "checkpoint")


def need_devices(way: str) -> None:
    if "CPU" not in way and not any(d.kind == "gpu" for d in xpurt.physical_devices()):
        pytest.skip("the virtual GPU is switched off")


@functools.cache
def found(script: str, way: str, *names: str) -> list[Found]:
    variable, argument = WAYS[way]
    return run(
        FOLDER / script, variable, *names, **UNDER_A_LAUNCHER, **{IN_PROGRAM: argument}
    )


@pytest.mark.parametrize("case", BY_DEFAULT)
def test_what_the_first_page_teaches(case: str) -> None:
    ranks = found("training.py", "program CPU", *BY_DEFAULT)
    assert [each[case] for each in ranks] == ["ok"] * RANKS


# A rank as torchrun starts it, except that it was forked.
RANK_1 = """
import os, warnings
os.environ.update(LOCAL_RANK="1", LOCAL_WORLD_SIZE="2")
warnings.simplefilter("error")
import torch, xpurt
"""
ORDINALS = (
    RANK_1
    + """
if {argument!r}:
    xpurt.set_xpu_mapping({argument!r})
torch.xpu.set_device(1)
x = torch.ones(3, device="xpu")
print(x.device, (x + torch.ones(3, device="xpu:0").to("xpu:1")).sum().item())
print(torch.xpu.device_count(), xpurt.get_xpu_mapping())
for kind in ("CPU", "GPU"):
    try:
        with xpurt.prefer(kind):
            print(kind)
    except xpurt.MappingError:
        pass
# A mapping for one block, and back.
del x
with xpurt.xpu_mapping("explicit", devices="cpu"):
    print(torch.xpu.device_count())
torch.xpu.set_device(1)
print(torch.xpu.device_count(), torch.ones(1, device="xpu:1").device)
placed = torch.nn.Sequential(torch.nn.Linear(2, 2))
xpurt.place(placed, {{"0": "CPU" if "CPU" in {way!r} else "GPU"}})
print(placed[0].weight.device)
"""
)


@pytest.mark.parametrize(
    "way",
    [pytest.param(way, marks=pytest.mark.slow if way in ALIKE else ()) for way in WAYS],
)
def test_ordinals_of_a_rank(way: str) -> None:
    need_devices(way)
    variable, argument = WAYS[way]
    code = ORDINALS.format(argument=argument, way=way)
    found = output(code, XPURT_MAPPING=variable).split("\n")
    mapping = variable or argument or "GPU"
    kinds = ["CPU", "GPU"] if mapping == "AUTO" else [mapping]
    assert found == ["xpu:1 6.0", f"2 {mapping}", *kinds, "1", "2 xpu:1", "xpu:1"]


@pytest.mark.parametrize("named", ['"explicit", devices="cpu"', '"CPU", partition=1'])
def test_a_mapping_that_decides_alone(named: str) -> None:
    code = RANK_1 + (
        f"xpurt.set_xpu_mapping({named})\n"
        "try:\n    torch.xpu.set_device(1)\n"
        "except xpurt.MappingError as error:\n    print(error)\n"
    )
    found = output(code, XPURT_MAPPING="")
    assert "xpu:1 is out of range" in found
    assert "each of them has an ordinal for each, xpu:0 to xpu:1" in found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "case", "way"),
    [
        (script, case, way)
        for script, module in SCRIPTS.items()
        for way in WAYS
        for case in cases(vars(module))
    ],
)
def test_each_way_of_naming(script: str, case: str, way: str) -> None:
    need_devices(way)
    assert [each[case] for each in found(script, way)] == ["ok"] * RANKS

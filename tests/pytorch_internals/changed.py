"""Lists the assumptions about PyTorch that no longer hold: `cd tests && python -m
pytorch_internals.changed`, in any environment with the PyTorch to check.

It does not import xpurt, which changes what is checked here, and loads only into the
PyTorch that it was built for.
"""

import importlib
import inspect
import os
import re
import subprocess
import sys
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"

import torch

from pytorch_internals.assumptions import MEMBERS
from pytorch_internals.cpp_names import NATIVE
from pytorch_internals.dispatch_keys import KEYS
from pytorch_internals.kinds import Expects, Member, Native, of_series
from pytorch_internals.patches import PATCHES
from pytorch_internals.used import CPP, ROOT, all_uses

TORCH = Path(torch.__file__).parent
SERIES = ".".join(torch.__version__.split(".")[:2])
INCLUDE = TORCH / "include"
SET_BY_XPURT = tuple(
    f"torch._C.{beginning}"
    for beginning in ("_xpu_", "_Xpu", "_XPU", "_broadcast", "_gather", "_scatter")
)
# The names by which other parts of torch.xpu refer to a name above; not of torch._C.
_LOCAL = {"_XPUAllocator"}


def resolve(name: str) -> Any:
    """The value of a dotted name. Raises AttributeError or ImportError."""
    first, *rest = name.split(".")
    value, path = importlib.import_module(first), first
    for part in rest:
        path += f".{part}"
        try:
            value = getattr(value, part)
        except AttributeError:
            if not inspect.ismodule(value):
                raise
            value = importlib.import_module(path)
    return value


def fault(name: str, value: Any, expects: Expects) -> str | None:
    """The difference between a value and the expected one."""
    expects = of_series(expects, SERIES)
    if expects.startswith("("):
        found = f"({', '.join(inspect.signature(value).parameters)})"
    elif expects:
        found = type(value).__name__
    else:
        return None
    return None if found == expects else f"{name} is {found}, and was {expects}"


def of_members(names: list[str]) -> list[str]:
    found: list[str] = []
    for name in names:
        # Names that xpurt sets, and the wheel lacks.
        if name.startswith(SET_BY_XPURT):
            continue
        row = next((row for row in MEMBERS if fnmatchcase(name, row.name)), None)
        found += _of_member(name, row or Member(name, "", ""))
    return found


def _of_member(name: str, row: Member) -> list[str]:
    try:
        value = resolve(name)
    except (AttributeError, ImportError):
        return [f"{name} is gone: {row.why}"]
    wrong = fault(name, value, row.expects)
    return [wrong] if wrong else []


def of_patches() -> list[str]:
    found = []
    for patch in PATCHES:
        for name, expects in patch.members:
            owner, _, attribute = name.partition(":")
            try:
                value = resolve(owner)
                if attribute:
                    value = inspect.getattr_static(value, attribute)
            except (AttributeError, ImportError):
                found.append(f"{name} is gone: {patch.why}")
                continue
            wrong = fault(name, value, expects)
            found += [wrong] if wrong else []
    dynamo = (TORCH / "_dynamo" / "device_interface.py").read_text()
    found += [
        f"torch._dynamo.device_interface has no {name}"
        for name in ("class XpuInterface", "get_xpu_stream")
        if name not in dynamo
    ]
    return found


def of_the_layer(names: list[str]) -> list[str]:
    """The names in `torch._C` that `torch.xpu` uses, and xpurt does not set."""
    asked = {
        name
        for file in (TORCH / "xpu").glob("*.py")
        for name in re.findall(r"\b_(?:xpu_|Xpu|XPU)\w+", file.read_text())
    }
    missing = asked - _LOCAL - {name.removeprefix("torch._C.") for name in names}
    return [f"torch.xpu wants torch._C.{name}, which xpurt lacks" for name in missing]


@cache
def _text_of(pattern: str) -> str:
    below = pattern.replace("/*", "/**/*")
    return "\n".join(file.read_text() for file in INCLUDE.glob(below))


def native_row(name: str) -> Native | None:
    return next((row for row in NATIVE if fnmatchcase(name, row.name)), None)


def of_native(names: list[str]) -> list[str]:
    found = []
    for name in names:
        row = native_row(name)
        if name.startswith("<"):
            gone = not (INCLUDE / name.strip("<>")).exists()
        elif row is None or not row.header:
            continue
        else:
            last = name.rpartition("::")[2]
            gone = not re.search(rf"\b{last}\b", _text_of(row.header))
        if gone:
            found.append(
                f"{name} is not declared in {row.header if row else 'PyTorch'}"
            )
    return found


def of_cuda_hooks() -> list[str]:
    """Virtual functions of the CUDA hooks that csrc's decorator does not forward."""
    header = (INCLUDE / "ATen/detail/CUDAHooksInterface.h").read_text()
    base = (INCLUDE / "ATen/detail/AcceleratorHooksInterface.h").read_text()
    text = re.sub(r"#ifdef USE_ROCM.*?#endif", "", header + base, flags=re.S)
    asked = set(re.findall(r"virtual\s+(?!~)[^;{(]*?\b(\w+)\s*\(", text))
    sources = (path.read_text() for path in CPP)
    (source,) = (text for text in sources if ": CUDAHooksInterface {" in text)
    forwarded = set(re.findall(r"FORWARD\([^,]+, (\w+),", source))
    forwarded |= set(re.findall(r"(\w+)\(\) const override", source))
    return [f"CUDA's hooks forward no {name}" for name in sorted(asked - forwarded)]


def of_keys() -> list[str]:
    found = []
    for key in {row.name.split()[1] for row in KEYS if row.empty}:
        theirs = torch._C._dispatch_get_registrations_for_dispatch_key(key)
        # Some come from Python for every device, and call other ops.
        theirs = [op for op in theirs if not op.startswith(("fsdp::", "symm_mem::"))]
        if theirs:
            found.append(f"PyTorch has kernels on {key} now: {', '.join(theirs[:5])}")
    nested = torch._C._dispatch_get_registrations_for_dispatch_key(
        "AutogradNestedTensor"
    )
    if "aten::scaled_dot_product_attention" in nested:
        found.append("PyTorch has attention on AutogradNestedTensor now")
    return found


def symbols_wanted() -> set[str]:
    """The mangled names that the extension takes from namespaces that are internal."""
    found: set[str] = set()
    for file in (ROOT / "xpurt").glob("_C*.so"):
        told = subprocess.run(
            ["nm", "-D", "--undefined-only", str(file)],
            capture_output=True,
            check=True,
            text=True,
        )
        symbols = {
            line.split()[1].partition("@")[0]
            for line in told.stdout.split("\n")
            if line
        }
        found |= {
            each
            for each in symbols
            if re.match(r"_ZN?K?(2at6native|2at4meta|2at6detail|2at4impl)", each)
        }
    return found


def of_symbols() -> list[str]:
    libraries = [TORCH / "lib" / f"lib{n}.so" for n in ("torch_cpu", "torch_python")]
    exported: set[str] = set()
    for library in libraries:
        told = subprocess.run(
            ["nm", "-D", "--defined-only", str(library)],
            capture_output=True,
            check=True,
            text=True,
        )
        exported |= {
            line.split()[2].partition("@")[0]
            for line in told.stdout.split("\n")
            if line
        }
    return [
        f"the wheel exports no {each}" for each in sorted(symbols_wanted() - exported)
    ]


def all_changes() -> list[str]:
    uses = all_uses()
    members = list(uses["python"])
    return [
        *of_members(members),
        *of_the_layer(members),
        *of_patches(),
        *of_native(list(uses["c++"])),
        *of_cuda_hooks(),
        *of_keys(),
        *of_symbols(),
    ]


if __name__ == "__main__":
    changes = all_changes()
    print("\n".join(changes))
    sys.exit(bool(changes))

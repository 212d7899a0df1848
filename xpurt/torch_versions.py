"""The versions of PyTorch that one source tree of xpurt serves.

A version has a series, "2.15" for 2.15.0 and its patch releases. The extension is compiled
for one version. What differs between series in C++ is in csrc/host/torch_version.h.

Nothing is imported here but the standard library: build scripts read this file by path.
Functions below that take part in a compilation import what they need.
"""

import dataclasses
import re
from collections.abc import Mapping, Sequence
from typing import Any

SERIES = ("2.13", "2.14", "2.15")
"""The supported series, the oldest first."""

PYTHONS = ("3.11", "3.12", "3.13", "3.14")
"""The versions of Python for which PyTorch and all that xpurt requires have wheels."""

REQUIREMENT = "torch>=2.13,<2.16"
"""What a source tree requires; a wheel requires the series that it was built for."""


def series_of(version: str) -> str:
    """The series of a version: "2.15" for "2.15.0+cpu" and for "2.15.0a0+git1a2b3c4".

    Raises ValueError if the text is no version.
    """
    found = re.match(r"\d+\.\d+", version)
    if found is None:
        raise ValueError(f"{version!r} is no version of PyTorch")
    return found[0]


def listed(names: Sequence[str], conjunction: str) -> str:
    """Several names in words: "2.13, 2.14 and 2.15"."""
    *others, last = names
    return f"{', '.join(others)} {conjunction} {last}"


def refusal(version: str) -> str | None:
    """Why xpurt cannot be built for this version; None if it can."""
    if series_of(version) in SERIES:
        return None
    return (
        f"xpurt is written for PyTorch {listed(SERIES, 'and')}; found {version}. Install one of "
        f'them: pip install "{REQUIREMENT}"'
    )


def without_cudagraphs(settings: Mapping[str, Any]) -> dict[str, Any]:
    """What to change of the settings of Inductor's `fw_compiler_freezing`, so that the
    frozen graph records no CUDA graph.

    settings: the keyword arguments of one call. Until 2.14 they have `cudagraphs`; from
    2.15 on, a dataclass `compiler_config_extra` that has it.
    """
    from torch._inductor.utils import BoxedBool

    extra = settings.get("compiler_config_extra")
    if extra is None:
        return {"cudagraphs": BoxedBool(False)}
    changed = dataclasses.replace(extra, cudagraphs=BoxedBool(False))
    return {"compiler_config_extra": changed}


def distance_kernel(text: str) -> str:
    """The text of a kernel for `_cdist_backward` or `_pdist_backward`, whose first
    argument is `grad_output` from 2.14 on, with the name that this PyTorch has for it."""
    import torch

    older = series_of(torch.__version__) == "2.13"
    return text.replace("grad_output", "grad") if older else text

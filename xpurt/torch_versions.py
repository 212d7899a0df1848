"""The versions of PyTorch that one source tree of xpurt serves.

A version has a series, "2.15" for 2.15.0 and its patch releases. The extension is compiled
for one version. What differs between series in C++ is in csrc/host/torch_version.h.

Nothing is imported here but the standard library: build scripts read this file by path.
"""

import re

SERIES = ("2.13", "2.14", "2.15")
"""The supported series, the oldest first."""

PYTHONS = ("3.11", "3.12", "3.13")
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


def supported() -> str:
    """The series in words: "2.13, 2.14 and 2.15"."""
    *others, last = SERIES
    return f"{', '.join(others)} and {last}"


def refusal(version: str) -> str | None:
    """Why xpurt cannot be built for this version; None if it can."""
    if series_of(version) in SERIES:
        return None
    return (
        f"xpurt is written for PyTorch {supported()}; found {version}. Install one of "
        f'them: pip install "{REQUIREMENT}"'
    )

"""What compilers of OpenCL C refuse, and Intel's takes: a declared name that is one of a
function of OpenCL C or a word of an extension, and a macro with a variable number of
arguments."""

import re

from kernels.declared_names import declared_names, functions_of_opencl
from xpurt import _C
from xpurt.kernels import registration
from xpurt.kernels.registration import make_source
from xpurt.kernels.sources.source import DeviceTraits

# OpenCL C 3.0, section 6.11 g.
VARIADIC_MACRO = re.compile(r"#\s*define\s+\w+\([^)]*\.\.\.")


# Keywords of compilers for FPGAs (cl_intel_channels).
KEYWORDS = {"channel"}


def is_refused(text: str) -> bool:
    taken = functions_of_opencl() | KEYWORDS
    return bool(declared_names(text) & taken or VARIADIC_MACRO.search(text))


def make_checked_source(key: str, device: DeviceTraits) -> tuple[str, str]:
    """As make_source of the registration. A source that is in the cache of kernels is not
    made: it was checked when it was new."""
    entry, text = make_source(key, device)
    assert not is_refused(text), f"compilers refuse a name in {entry}:\n{text}"
    return entry, text


def check_sources() -> None:
    """Each source of a kernel that this process makes is checked, also if xpurt registers
    its kernels later: at the first use of a device."""
    registration.make_source = make_checked_source
    _C.set_source_callbacks(make_checked_source, registration.fail)

"""The recursive filter of torchaudio on xpu.

Its op has a kernel for the CPU, one for CUDA, and one made of other ops, for every other
device: three ops for each sample. On xpu the CPU kernel is taken in place of that one, as
for an op that has no other.
"""

from types import ModuleType
from typing import Final

from xpurt import _C

_OP: Final = "torchaudio::_lfilter_core_loop"


def change(extension: ModuleType) -> None:
    """Changes the op once ``torchaudio._extension`` has loaded its library.

    Does nothing in a torchaudio without a library, which filters in Python.
    """
    _C.prefer_cpu_kernel(_OP, "")

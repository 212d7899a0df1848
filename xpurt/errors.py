"""The exception family. Every message says what was requested, what was found, a
remedy.

Running out of memory is not here: that is ``torch.OutOfMemoryError``, as everywhere
in PyTorch.
"""

import difflib
from collections.abc import Iterable


class XpurtError(RuntimeError):
    """The root of everything that xpurt itself raises."""


class ConfigError(XpurtError):
    """An ``XPURT_*`` environment variable holds a value that it cannot have."""


class MappingError(XpurtError):
    """A mapping that the devices at hand cannot give, or that cannot change now."""


class FallbackError(XpurtError):
    """An op had to leave the device, and ``XPURT_FALLBACK=error`` forbids it; or the
    device's memory is hidden from the host, and a copy can't serve the op."""


class NoisyError(XpurtError):
    """A calibration that is not kept, for what else the machine did meanwhile."""


class KernelBuildError(XpurtError):
    """A kernel did not build; the message carries its source and the driver's log."""


class PlanningError(XpurtError, ValueError):
    """A task graph, or a request to plan or simulate one, that makes no sense."""


def nearest(word: str, known: Iterable[str]) -> str:
    """The known word that `word` was probably to be, in any case; "" if none is near."""
    by_lower = {each.lower(): each for each in known}
    near = difflib.get_close_matches(word.lower(), by_lower, n=1)
    return by_lower[near[0]] if near else ""

"""The exception family. Every message gives what was requested, what was found, and a
remedy.

It has no class for running out of memory: that is ``torch.OutOfMemoryError``, as
everywhere in PyTorch.
"""

import difflib
from collections.abc import Iterable


class XpurtError(RuntimeError):
    """The base of all exceptions that xpurt itself defines."""


class ConfigError(XpurtError):
    """An ``XPURT_*`` environment variable holds a value that it cannot have."""


class MappingError(XpurtError):
    """The devices cannot give the requested mapping, or it cannot change now."""


class FallbackError(XpurtError):
    """An op had to leave the device, and ``XPURT_FALLBACK=error`` forbids it; or the
    device's memory is hidden from the host, and a copy can't serve the op."""


class NoisyError(XpurtError):
    """A calibration was discarded: other work on the machine disturbed it."""


class KernelBuildError(XpurtError):
    """A kernel did not build; the message carries its source and the driver's log.

    summary: the device, the kernel, and the first lines of the log.
    """

    summary = ""


class PlanningError(XpurtError, ValueError):
    """A task graph, or a request to plan or simulate one, is invalid."""


def nearest(word: str, known: Iterable[str]) -> str:
    """The entry of `known` that is closest to `word`, in any case; "" if none is."""
    by_lower = {each.lower(): each for each in known}
    near = difflib.get_close_matches(word.lower(), by_lower, n=1)
    return by_lower[near[0]] if near else ""

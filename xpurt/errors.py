"""The exception family. Every message says what was wished, what was found, a way out.

Running out of memory is not here: that is ``torch.OutOfMemoryError``, as everywhere
in PyTorch.
"""


class XpurtError(RuntimeError):
    """The root of everything that xpurt itself raises."""


class ConfigError(XpurtError):
    """An ``XPURT_*`` environment variable holds a value that it cannot have."""


class MappingError(XpurtError):
    """A mapping that the devices at hand cannot give, or that cannot change now."""


class FallbackError(XpurtError):
    """An op had to leave the device, and ``XPURT_FALLBACK=error`` forbids it; or the
    device's memory is hidden from the host, and a copy can't serve the op."""


class KernelBuildError(XpurtError):
    """A kernel did not build; the message carries its source and the driver's log."""


class PlanningError(XpurtError, ValueError):
    """A task graph, or a wish to plan or simulate one, that makes no sense."""

"""What PyTorch itself refuses for a device type, whatever its kernels do.

Such pairs are not counted, as those that the CPU refuses are not. Each entry has the reason,
and the text of PyTorch's error. A pair is refused if all of its failures have this text.
`tests/conformance/test_refused.py` shows each error without xpurt's kernels.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final

from xpurt_tools.conformance.results import Result


@dataclass(frozen=True, slots=True)
class Refusal:
    """devices: the types. op: a shell pattern."""

    devices: tuple[str, ...]
    op: str
    error: str
    reason: str

    def covers(self, result: Result, device: str) -> bool:
        return (
            device in self.devices
            and fnmatchcase(result.name, self.op)
            and result.status == "failed"
            and bool(result.failures)
            and all(self.error in failure.message for failure in result.failures)
        )


_OWN_TYPES: Final = ("ipu", "mtia", "maia", "xla", "hpu")

REFUSALS: Final = (
    Refusal(
        _OWN_TYPES,
        "sparse.sampled_addmm",
        "new_compressed_tensor",
        "of these types PrivateUse1 alone has keys of compressed sparse tensors",
    ),
    Refusal(
        _OWN_TYPES,
        "sparse.mm.reduce",
        "new_compressed_tensor",
        "of these types PrivateUse1 alone has keys of compressed sparse tensors",
    ),
    Refusal(
        _OWN_TYPES,
        "optim.SparseAdam",
        "Unrecognized tensor type ID: Sparse",
        "the legacy constructor that SparseAdam calls lists the device types",
    ),
)


def mark_refused(results: Iterable[Result], device: str) -> None:
    """Gives the failed results that PyTorch refuses the status "refused"."""
    for result in results:
        if any(refusal.covers(result, device) for refusal in REFUSALS):
            result.status = "refused"

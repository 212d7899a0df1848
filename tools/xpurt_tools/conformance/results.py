"""The results of pairs: plain data, as in the JSON file, and their sums."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Status = Literal["passed", "failed", "crashed", "hung", "not on the CPU", "refused"]
BAD = ("failed", "crashed", "hung")


@dataclass(frozen=True, slots=True)
class Failure:
    """One sample whose result on xpu is wrong.

    variant: the form of the call: "call", "out=", "in-place", "error".
    index: the sample's position in PyTorch's order for this pair.
    sample: a short text of its inputs.
    """

    variant: str
    index: int
    sample: str
    message: str


@dataclass(slots=True)
class Result:
    """The result of one pair.

    trials: the number of comparisons, by what was compared ("values", "wider",
        "random", "uninitialized", "raised"; "stock" if torch.compile fails on CPU
        tensors, too).
    failed: the number of failed comparisons; `failures` holds the first few, and
        `failed_variants` the number of each variant.
    tiers: calls of ops on xpu by tier.
    """

    name: str
    dtype: str
    category: str
    status: Status = "passed"
    trials: dict[str, int] = field(default_factory=dict)
    failed: int = 0
    failures: list[Failure] = field(default_factory=list)
    failed_variants: dict[str, int] = field(default_factory=dict)
    tiers: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0

    def add_failure(self, variant: str) -> None:
        self.failed += 1
        self.failed_variants[variant] = self.failed_variants.get(variant, 0) + 1

    @property
    def ok(self) -> bool:
        return self.status == "passed"

    @property
    def counts(self) -> bool:
        """Whether the pair runs on the CPU, so that there is a result to compare, and PyTorch
        does not refuse the device type."""
        return self.status not in ("not on the CPU", "refused")

    @property
    def compared(self) -> str:
        """ "wider" if the values of a sample agreed only in a wider type, else "values"
        if values were compared, else what was compared."""
        for kind in ("wider", "values", "random", "uninitialized"):
            if self.trials.get(kind):
                return kind
        return "-"

    @property
    def on_kernels(self) -> bool:
        """Whether a kernel of ours or a oneDNN primitive took part."""
        return bool(self.tiers.get("sycl") or self.tiers.get("onednn"))

    def as_data(self) -> dict[str, Any]:
        return asdict(self)


def from_data(data: dict[str, Any]) -> Result:
    failures = [Failure(**failure) for failure in data["failures"]]
    return Result(**{**data, "failures": failures})


@dataclass(slots=True)
class Tally:
    """Results added up.

    tiers: pairs that used the tier at least once. A pair can use several.
    """

    pairs: int = 0
    passed: int = 0
    not_on_cpu: int = 0
    refused: int = 0
    tiers: Counter[str] = field(default_factory=Counter)
    on_kernels: int = 0

    def add(self, result: Result) -> None:
        if not result.counts:
            self.refused += result.status == "refused"
            self.not_on_cpu += result.status != "refused"
            return
        self.pairs += 1
        self.passed += result.ok
        self.on_kernels += result.on_kernels
        self.tiers.update(tier for tier, calls in result.tiers.items() if calls)

    @property
    def rate(self) -> float:
        """The share of the pairs running on the CPU that are right on xpu: 0 to 1."""
        return self.passed / self.pairs if self.pairs else 1.0

    @property
    def kernel_share(self) -> float:
        """The share of the pairs running on the CPU that used kernels: 0 to 1."""
        return self.on_kernels / self.pairs if self.pairs else 0.0


def tally(results: Iterable[Result]) -> Tally:
    total = Tally()
    for result in results:
        total.add(result)
    return total


def tallies(
    results: Iterable[Result], by: Literal["category", "dtype"]
) -> dict[str, Tally]:
    """A tally per category or per dtype, in the order of their first appearance."""
    found: dict[str, Tally] = {}
    for result in results:
        found.setdefault(getattr(result, by), Tally()).add(result)
    return found


def compared(results: Iterable[Result]) -> tuple[int, int]:
    """The number of comparisons of all results, and of those that failed."""
    found = list(results)
    return (
        sum(sum(result.trials.values()) for result in found),
        sum(result.failed for result in found),
    )

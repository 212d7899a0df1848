"""The result of a run as text: tables per category, dtype and tier, and failures."""

from collections.abc import Mapping, Sequence

from xpurt.text.table import table
from xpurt_tools.conformance.known import Known
from xpurt_tools.conformance.results import Result, Tally, tallies, tally
from xpurt_tools.conformance.tiers import TIERS

HEADINGS = ("", ">pairs", ">right", ">rate", *(f">{tier}" for tier in TIERS))


def rows(named: Mapping[str, Tally]) -> list[tuple[str, ...]]:
    """A row per tally: the pairs that run on the CPU, those of them that are right on
    xpu, and the share of them that used each tier."""
    return [
        (
            name,
            f"{each.pairs:,}",
            f"{each.passed:,}",
            f"{each.rate:.2%}",
            *(f"{each.tiers[tier] / (each.pairs or 1):.1%}" for tier in TIERS),
        )
        for name, each in named.items()
    ]


def summary(results: Sequence[Result]) -> str:
    """Tables per category, with a line for all, and per dtype."""
    by_category = {**tallies(results, "category"), "all": tally(results)}
    by_dtype = tallies(results, "dtype")
    return "\n\n".join(
        table(("category" if index == 0 else "dtype", *HEADINGS[1:]), rows(part))
        for index, part in enumerate((by_category, by_dtype))
    )


def headline(results: Sequence[Result], label: str, left_out: int) -> str:
    """One paragraph: the rate, what was compared, and what was left out."""
    total = tally(results)
    compared = [r.compared for r in results if r.counts]
    return (
        f"mapping {label}: {total.passed:,} of {total.pairs:,} pairs are right on xpu, "
        f"{total.rate:.2%}; {total.kernel_share:.1%} took SYCL or oneDNN.\n"
        f"{compared.count('random'):,} of them draw numbers and were compared but for "
        f"values, {compared.count('uninitialized'):,} return uninitialized memory; "
        f"{compared.count('wider'):,} round otherwise than the CPU,\n"
        "and are as right as it by what it gives in the next wider type.\n"
        f"Not counted: {total.not_on_cpu:,} pairs that raise on the CPU too, "
        f"{left_out:,} that PyTorch does not list for it"
        + (
            f", {total.refused:,} that PyTorch refuses for the device type."
            if total.refused
            else "."
        )
    )


def failures(results: Sequence[Result]) -> str:
    """Each failed result, with the samples that failed."""
    lines = []
    for result in results:
        if not result.counts or result.ok:
            continue
        lines.append(f"{result.status}: {result.name} {result.dtype}{_times(result)}")
        for failure in result.failures:
            where = failure.variant
            if failure.index >= 0:
                where += f", sample {failure.index}: {failure.sample}"
            lines.append(f"    {where}")
            lines += [f"        {line}" for line in failure.message.splitlines()]
    return "\n".join(lines)


def _times(result: Result) -> str:
    tried = sum(result.trials.values())
    return f" ({result.failed} of {tried} comparisons)" if tried else ""


def verdict(unknown: Sequence[Result], stale: Sequence[Known]) -> str:
    """The reasons why the run fails; empty if there are none."""
    lines = []
    if unknown:
        names = ", ".join(f"{r.name} {r.dtype}" for r in unknown[:10])
        more = f" and {len(unknown) - 10} more" if len(unknown) > 10 else ""
        lines.append(f"{len(unknown)} failures are not known: {names}{more}")
    lines += [
        f"known failures, {entry}: it passes; take the line out" for entry in stale
    ]
    return "\n".join(lines)

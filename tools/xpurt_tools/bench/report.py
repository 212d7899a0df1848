"""Results as text: a table per suite, and one of the targets."""

from collections.abc import Sequence

from xpurt.text.table import table
from xpurt_tools.bench.calibration_loop import TOO_BUSY
from xpurt_tools.bench.limits import Limits
from xpurt_tools.bench.results import RowResult, SuiteResult
from xpurt_tools.bench.row import LARGE, LARGE_LIMIT
from xpurt_tools.bench.timing import Ratio

HEADINGS = (
    "row", ">CPU", ">xpu", ">ratio", ">quartiles", ">no faults", "tier",
    ">GB/s", ">of triad", ">GFLOP/s", ">of oneDNN",
)  # fmt: skip
TARGET_HEADINGS = (
    "suite", ">geomean", ">at most", "", ">no faults", ">at most", "",
    ">rows", ">failed", ">rows over their limit",
)  # fmt: skip


def limits_sentence(limits: Limits) -> str:
    def rate(value: float, unit: str) -> str:
        return f"{value:,.1f} {unit}" if value else "not measured"

    return (
        f"This machine's limits: stream triad {rate(limits.triad, 'GB/s')} "
        f"(PyTorch's CPU kernel {rate(limits.triad_cpu, 'GB/s')}, SYCL kernel "
        f"{rate(limits.triad_xpu, 'GB/s')}); product of 2048x2048 matrices by oneDNN "
        f"alone {rate(limits.onednn_f32, 'GFLOP/s')} in f32, "
        f"{rate(limits.onednn_bf16, 'GFLOP/s')} in bf16; by stock PyTorch in f32 "
        f"{rate(limits.stock_f32, 'GFLOP/s')}."
    )


def headings(result: SuiteResult) -> tuple[str, ...]:
    """The headings, with columns for processor times and limits if the suite has them,
    and for each other library that a row was compared with."""
    name, _, *rest = HEADINGS
    limits = (">processor", ">at most") if result.suite.processor else ()
    others = (f">xpu/{other}" for other in _others(result))
    return (name, f">{result.suite.beside}", *rest, *limits, *others)


def cells(result: SuiteResult, limits: Limits) -> list[tuple[str, ...]]:
    """A line per measured row."""
    peak = limits.onednn_bf16 if "bf16" in result.suite.name else limits.onednn_f32
    return [
        (
            row.name,
            size(row.cpu_bytes) if row.cpu_bytes else duration(row.cpu_s),
            size(row.xpu_bytes) if row.cpu_bytes else duration(row.xpu_s),
            _ratio(row.ratio),
            f"{row.ratio.low:.2f}-{row.ratio.high:.2f}" if row.ratio else "",
            _ratio(row.neutral),
            row.tier,
            f"{row.gb_per_s:.1f}" if row.size_bytes else "",
            _share(row.gb_per_s, limits.triad),
            f"{row.gflop_per_s:.1f}" if row.flops else "",
            _share(row.gflop_per_s, peak),
            *_limit_cells(result, row),
            *(_beside(result, row, other) for other in _others(result)),
        )
        for row in result.measured
    ]


def suite_table(result: SuiteResult, limits: Limits) -> str:
    lines = [f"{result.suite.name}: {result.suite.about}"]
    if result.measured:
        lines.append(table(headings(result), cells(result, limits)))
    return "\n".join([*lines, *verdicts(result, limits)])


def verdicts(result: SuiteResult, limits: Limits) -> list[str]:
    """Sentences: the targets, the rows over a limit, the rows that failed, and libraries
    that are not installed."""
    suite = result.suite
    lines = []
    if result.geomean is not None:
        part = "" if result.whole else ", of a part of the rows"
        lines.append(
            f"geomean {result.geomean:.2f}, at most {suite.target:.2f}: "
            f"{verdict(result.met)}{part}"
        )
    if suite.neutral_target is not None and result.neutral_geomean is not None:
        lines.append(
            f"without page faults {result.neutral_geomean:.2f}, at most "
            f"{suite.neutral_target:.2f}: {verdict(result.neutral_met)}"
        )
    if shares := result.shares(limits):
        assert suite.reach is not None
        enough = sum(share >= suite.reach.share for _, share in shares)
        worst, least = min(shares, key=lambda each: each[1])
        lines.append(
            f"{enough} of {len(shares)} rows reach {suite.reach.share:.0%} of "
            f"{suite.reach.limit}; the least is {least:.0%}, {worst.name}"
        )
    for mean in suite.means:
        found = result.mean(mean)
        if found is not None:
            lines.append(
                f"geomean of {mean.rows!r} {found:.2f}, at most {mean.at_most:.2f}: "
                f"{verdict(found <= mean.at_most)}"
            )
    if result.disturbed:
        names = ", ".join(
            f"{row.name} (load {row.load:.2f})" for row in result.disturbed
        )
        lines.append(f"{TOO_BUSY}, and in no mean: {names}")
    if over := result.over_the_limit:
        lines.append(_over(result, over))
    lines += [
        f"{row.name}: {value:.2f} of {name}, at most {limit:.2f}: "
        f"{verdict(value <= limit)}"
        for row, name, value, limit in result.beside_others()
    ]
    lines += [f"{row.name}: {row.error}" for row in result.rows if row.error]
    lines += [
        f"{row.name}: {name}: {other.error}"
        for row in result.rows
        for name, other in row.others.items()
        if other.error
    ]
    return lines + _missing(result)


def _missing(result: SuiteResult) -> list[str]:
    """A line for each other library that is not installed."""
    modules: dict[str, set[str]] = {}
    for row in result.rows:
        for name, other in row.others.items():
            if other.missing:
                modules.setdefault(name, set()).add(other.missing)
    return [
        f"{name}: not installed ({', '.join(sorted(missing))})"
        for name, missing in modules.items()
    ]


def _over(result: SuiteResult, over: Sequence[RowResult]) -> str:
    names = ", ".join(f"{row.name} {_ratio(result.judged(row))}" for row in over)
    suite = result.suite
    if any(row.at_most is not None for row in suite.rows):
        return f"rows over their limits: {names}"
    each = suite.row_limit or LARGE_LIMIT
    of = "" if suite.row_limit else f" of {LARGE:,} elements or more"
    return f"rows{of} over {each:.2f}: {names}"


def target_cells(result: SuiteResult) -> tuple[str, ...]:
    """The suite's line in the table of targets."""
    suite = result.suite
    neutral = suite.neutral_target
    return (
        suite.name,
        _number(result.geomean),
        _number(suite.target),
        verdict(result.met),
        _number(result.neutral_geomean),
        _number(neutral),
        verdict(result.neutral_met) if neutral is not None else "",
        str(len(result.measured)),
        str(len(result.rows) - len(result.measured)),
        str(len(result.over_the_limit)),
    )


def target_table(results: Sequence[SuiteResult]) -> str:
    return table(TARGET_HEADINGS, (target_cells(each) for each in results))


def verdict(met: bool | None) -> str:
    return "not measured" if met is None else "met" if met else "not met"


def duration(seconds: float) -> str:
    """The time with three digits: 1.23 us, 45.6 ms, 7.89 s."""
    for unit, factor in (("us", 1e6), ("ms", 1e3)):
        if seconds * factor < 1000:
            return f"{_three_digits(seconds * factor)} {unit}"
    return f"{_three_digits(seconds)} s"


def size(size_bytes: float) -> str:
    return f"{size_bytes / 1e6:,.0f} MB"


def _three_digits(value: float) -> str:
    return f"{value:.{2 if value < 10 else 1 if value < 100 else 0}f}"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _ratio(ratio: Ratio | None) -> str:
    return "" if ratio is None else f"{ratio.value:.2f}"


def _share(rate: float, most: float) -> str:
    return f"{rate / most:.0%}" if rate and most else ""


def _others(result: SuiteResult) -> list[str]:
    """The other libraries that rows were compared with, in the order of the rows."""
    names = (
        name
        for row in result.rows
        for name, other in row.others.items()
        if result.judged(other)
    )
    return list(dict.fromkeys(names))


def _beside(result: SuiteResult, row: RowResult, other: str) -> str:
    found = row.others.get(other)
    return "" if found is None else _ratio(result.judged(found))


def _limit_cells(result: SuiteResult, row: RowResult) -> tuple[str, ...]:
    if not result.suite.processor:
        return ()
    return _ratio(row.processor), _number(result.limit_of(row))

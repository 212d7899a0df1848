"""`python -m xpurt simulate`: compares the policies on simulated machines of 1 to 64
devices."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import geometric_mean

from xpurt.mapping import TaskGraph
from xpurt.text.markdown_section import Section, head_of, line_of
from xpurt_tools import workloads
from xpurt_tools.commands.co_execution_table import co_execution_lines
from xpurt_tools.commands.larger_model_table import larger_model_lines
from xpurt_tools.simulation import SimulatedDevice, Simulation, fleets, simulate

DEVICES = (1, 2, 4, 8, 16, 32, 64)
POLICIES = ("eft", "in-order", "lookahead", "cpop", "peft")  # against HEFT
# Of other runtimes, which decide while the program runs.
OTHERS = ("dmda", "dmdas", "openvino", "openvino-cumulative")
WORKLOADS: dict[str, Callable[[], workloads.Workload]] = {
    "cholesky": workloads.cholesky,
    "lu": workloads.lu,
    "qr": workloads.qr,
    "fft": workloads.fft,
    "stencil": workloads.stencil,
    "layered": workloads.layered,
    "transformer": workloads.transformer_step,
    "resnet": workloads.resnet_step,
    "requests": lambda: workloads.repeated(workloads.transformer_step(layers=2), 8),
}
FLEETS: dict[str, Callable[[int], list[SimulatedDevice]]] = {
    "alike": fleets.alike,
    "mixed": fleets.mixed,
    "lopsided": fleets.lopsided,
}
CLEARLY = 1.001  # a smaller difference is none
MOST_OF_HEFT = 1.10  # geomean of "eft" over "heft"
MOST_OF_SINGLE = 1.02  # geomean
MOST_OF_SINGLE_ONCE = 1.05

CO_EXECUTION = Section(
    "<!-- co-execution: begin, written by the command -->", "<!-- co-execution: end -->"
)
LARGER_MODELS = Section(
    "<!-- larger models: begin, written by the command -->",
    "<!-- larger models: end -->",
)
TABLES = Section(
    "<!-- policies: begin, written by the command -->", "<!-- policies: end -->"
)


@dataclass(frozen=True, slots=True)
class Case:
    """One workload on one machine. Makespans in microseconds."""

    fleet: str
    devices: int
    workload: str
    single: float  # the best device alone
    bound: float
    heft: float
    others: dict[str, float]  # by policy: those of POLICIES and OTHERS


def run_simulate(
    devices: Sequence[int], markdown: Path | None, plot: Path | None
) -> int:
    """Prints the tables, or writes them into a page. Returns 1 if "eft" or "lookahead"
    exceeds a limit.

    Raises BadMarkers, OSError, and MissingExtra without matplotlib.
    """
    if markdown is not None:
        for section in (TABLES, CO_EXECUTION, LARGER_MODELS):
            section.of(markdown.read_text())  # raises before minutes of work
    if plot is not None:
        simulate(workloads.cholesky(6), fleets.mixed(4), "eft").plot(plot)
    cases = list(measured(devices))
    written = {
        TABLES: report(cases),
        CO_EXECUTION: list(co_execution_lines(devices)),
        LARGER_MODELS: list(larger_model_lines()),
    }
    if markdown is None:
        print("\n\n".join("\n".join(lines) for lines in written.values()))
    else:
        page = markdown.read_text()
        for section, lines in written.items():
            page = section.replaced(page, lines)
        markdown.write_text(page)
    judged = (
        each for policy in ("eft", "lookahead") for each in verdicts(cases, policy)
    )
    return 0 if all(holds for holds, _ in judged) else 1


def measured(devices: Sequence[int]) -> Iterator[Case]:
    """Every workload on every machine; without noise."""
    works = {name: make() for name, make in WORKLOADS.items()}
    for fleet, machine in FLEETS.items():
        for count in devices:
            if fleet != "alike" and count == 1:
                continue  # with one device, the fleets do not differ
            for name, work in works.items():
                heft = simulate(work, machine(count), "heft")
                others = {
                    policy: simulate(work, machine(count), policy).makespan
                    for policy in POLICIES + OTHERS
                }
                yield Case(
                    fleet, count, name, _single(heft), heft.bound, heft.makespan, others
                )


def _single(simulated: Simulation) -> float:
    graph: TaskGraph = simulated.schedule.graph
    return float(graph.costs.sum(axis=0).min())


def report(cases: Sequence[Case]) -> list[str]:
    """The tables, and the verdicts."""
    machines = {(case.fleet, case.devices): None for case in cases}
    names = {case.workload: None for case in cases}
    several = [case for case in cases if case.devices > 1]
    by_machine = [
        (
            f"{fleet}, {count}",
            [c for c in cases if (c.fleet, c.devices) == (fleet, count)],
        )
        for fleet, count in machines
    ]
    by_workload = [(name, [c for c in several if c.workload == name]) for name in names]
    return [
        *_table("machine", by_machine),
        "",
        *_table("work, on 2 devices and more", by_workload),
        "",
        *_others_table(
            "machine", [each for each in by_machine if each[1][0].devices > 1]
        ),
        "",
        *_others_table("work, on 2 devices and more", by_workload),
        "",
        *_comparisons(several),
        "",
        *(
            f"- {said}"
            for policy in ("eft", "in-order", "lookahead")
            for _, said in verdicts(cases, policy)
        ),
    ]


def verdicts(cases: Sequence[Case], policy: str) -> list[tuple[bool, str]]:
    """Whether a policy keeps each limit, and a sentence with the figures."""
    several = [case for case in cases if case.devices > 1] or cases
    to_heft = [c.others[policy] / c.heft for c in several]
    to_single = [c.others[policy] / c.single for c in several]
    found = []
    for value, limit, what in (
        (geometric_mean(to_heft), MOST_OF_HEFT, "HEFT on the geomean"),
        (
            geometric_mean(to_single),
            MOST_OF_SINGLE,
            "the best device alone on the geomean",
        ),
        (
            max(to_single),
            MOST_OF_SINGLE_ONCE,
            "the best device alone in the worst case",
        ),
    ):
        holds = value <= limit
        said = "met" if holds else "not met"
        sentence = f"{policy}: {value:.3f} of {what}; at most {limit:.2f}: {said}"
        found.append((holds, sentence))
    return found


def _table(what: str, rows: Sequence[tuple[str, Sequence[Case]]]) -> list[str]:
    heads = [
        "HEFT/bound",
        "best alone/HEFT",
        *(f"{policy}/HEFT" for policy in POLICIES),
        "worst eft/HEFT",
        "worst eft/best alone",
    ]
    lines = head_of([what, *(f">{name}" for name in heads)])
    for name, cases in rows:
        numbers = [
            geometric_mean([c.heft / c.bound for c in cases]),
            geometric_mean([c.single / c.heft for c in cases]),
            *(geometric_mean([c.others[p] / c.heft for c in cases]) for p in POLICIES),
            max(c.others["eft"] / c.heft for c in cases),
            max(c.others["eft"] / c.single for c in cases),
        ]
        lines.append(line_of([name, *(f"{number:.2f}" for number in numbers)]))
    return lines


def _others_table(
    what: str, rows: Sequence[tuple[str, Sequence[Case]]]
) -> Iterator[str]:
    """Our policies against those of other runtimes: geometric means, and the cases in
    which ours loses."""
    yield from head_of(
        [
            what,
            *(f">eft/{other}" for other in OTHERS),
            *(f">lookahead/{other}" for other in OTHERS[:2]),
            ">eft loses to dmda",
            ">worst",
        ]
    )
    for name, cases in rows:
        lost, worst = _losses(cases, "eft", "dmda")
        means = [
            *(_mean(cases, "eft", other) for other in OTHERS),
            *(_mean(cases, "lookahead", other) for other in OTHERS[:2]),
        ]
        yield line_of(
            [
                name,
                *(f"{mean:.2f}" for mean in means),
                f"{lost} of {len(cases)}",
                f"{worst:.2f}",
            ]
        )


def _comparisons(cases: Sequence[Case]) -> Iterator[str]:
    for ours in ("eft", "lookahead"):
        for other in OTHERS:
            lost, worst = _losses(cases, ours, other)
            yield (
                f"- {ours}: {_mean(cases, ours, other):.2f} of {other} on the geomean; "
                f"slower in {lost} of {len(cases)} cases, at most {worst:.2f}"
            )


def _mean(cases: Sequence[Case], ours: str, other: str) -> float:
    return geometric_mean([c.others[ours] / c.others[other] for c in cases])


def _losses(cases: Sequence[Case], ours: str, other: str) -> tuple[int, float]:
    """In how many cases ours takes clearly longer, and the largest ratio."""
    ratios = [c.others[ours] / c.others[other] for c in cases]
    return sum(ratio > CLEARLY for ratio in ratios), max(ratios)

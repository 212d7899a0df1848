"""The suite `auto`: its verdicts on times that are made up, and one case for real."""

import json
import os
from pathlib import Path

import pytest

from xpurt_tools.bench import BadRequest, Request
from xpurt_tools.bench.auto import run
from xpurt_tools.bench.auto.case import ALONE, AutoCase, Limit
from xpurt_tools.bench.auto.cases import CASES, CO_EXECUTED, GROUP_LIMITS
from xpurt_tools.bench.auto.mapping_process import MappingProcess
from xpurt_tools.bench.auto.measured import Measured, group_sentences
from xpurt_tools.bench.auto.memory_rate import memory_gain
from xpurt_tools.bench.auto.report import SECTION, as_table
from xpurt_tools.bench.auto.run import median_run
from xpurt_tools.bench.auto.training import NETWORKS
from xpurt_tools.bench.calibration_loop import MOST, CalibrationLoop


def case(most: float, against: tuple[str, ...] = ALONE, group: str = "") -> AutoCase:
    return AutoCase("made up", lambda: lambda: None, Limit(most, against), group=group)


def measured(of: AutoCase, load: float = 1.0, **seconds: float) -> Measured:
    return Measured(of, (seconds,), load)


def test_the_best_single_device_counts() -> None:
    found = measured(case(1.05), CPU=2.0, GPU=1.0, AUTO=1.04)
    assert found.value == pytest.approx(1.04)
    assert found.verdict == "met"
    found = measured(case(1.05, ("CPU",)), CPU=1.0, AUTO=1.06)
    assert found.verdict == "not met"


def test_what_equal_programs_have_is_met_and_said() -> None:
    of = AutoCase("made up", lambda: lambda: None, Limit(1.02, noise=1.03))
    values = {1.02: "met", 1.029: "met: equal within the noise", 1.04: "not met"}
    for value, verdict in values.items():
        assert measured(of, CPU=1.0, GPU=2.0, AUTO=value).verdict == verdict


def test_the_median_of_several_runs_counts() -> None:
    runs = [measured(case(1.02), CPU=1.0, GPU=2.0, AUTO=of) for of in (1.1, 0.9, 1.0)]
    assert median_run(runs).value == 1.0


def test_together_is_as_if_each_did_its_part() -> None:
    together = AutoCase("made up", lambda: lambda: None, Limit(1 / 0.85, together=True))
    found = measured(together, CPU=3.0, GPU=1.5, AUTO=1.1)
    assert found.value == pytest.approx(1.1)
    assert found.efficiency == pytest.approx(1 / 1.1)
    assert found.is_met


def test_what_is_added_is_nanoseconds_per_op() -> None:
    added = AutoCase(
        "made up", lambda: lambda: None, Limit(150, ("CPU",), added_ns=1000)
    )
    assert measured(added, CPU=1e-3, AUTO=1.1e-3).value == pytest.approx(100)
    assert measured(added, CPU=1e-3, AUTO=1.1e-3).is_met
    assert not measured(added, CPU=1e-3, AUTO=1.2e-3).is_met


def test_rounds_are_compared_one_by_one() -> None:
    """A slow machine slows down a round, not a mapping: the ratio of the medians would
    compare an early round with a late one."""
    rounds = tuple(
        {"CPU": 1.0 * slow, "GPU": 9.0, "AUTO": 0.9 * slow} for slow in (1, 2, 4)
    )
    found = Measured(case(1.05), rounds)
    assert found.value == pytest.approx(0.9)
    assert found.quartiles == pytest.approx((0.9, 0.9))


def test_a_busy_machine_is_not_judged() -> None:
    found = measured(case(1.05), load=2 * MOST, CPU=1.0, GPU=1.0, AUTO=2.0)
    assert found.verdict == "too busy to judge"
    (group,) = GROUP_LIMITS
    found = measured(case(1.05, group=group), 2 * MOST, CPU=1.0, GPU=1.0, AUTO=2.0)
    (line,) = group_sentences([found])
    assert line.endswith("too busy to judge")


def test_the_calibration_loop_compares_with_its_least(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(CalibrationLoop, "_work", lambda *_: (1.0, 1.0))
    loop = CalibrationLoop()
    monkeypatch.setattr(CalibrationLoop, "_work", lambda *_: (1.5, 1.2))
    assert loop.load() == pytest.approx(1.5)
    loop.close()


def test_the_calibration_loop_takes_time() -> None:
    loop = CalibrationLoop()
    assert loop.load() >= 1.0
    loop.close()


def test_each_thread_has_a_core_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    pinned: list[int] = []
    monkeypatch.setattr(os, "sched_setaffinity", lambda _, cores: pinned.extend(cores))
    loop = CalibrationLoop()
    pinned.clear()
    loop.load()
    loop.close()
    assert sorted(pinned) == sorted(os.sched_getaffinity(0))
    pinned.clear()
    assert memory_gain(1 << 16) > 0
    assert set(pinned) == os.sched_getaffinity(0)


def test_a_table_has_a_row_per_case() -> None:
    found = measured(case(0.5), CPU=2e-3, GPU=3e-3, AUTO=1.5e-3)
    (row,) = as_table([found]).splitlines()[2:]
    assert row.split()[2:] == [
        *("2.000", "3.000", "1.500", "0.750"),
        *("0.750", "to", "0.750", "0.500", "1.00", "not", "met"),
    ]


def test_a_group_is_judged_by_its_geometric_mean() -> None:
    (group,) = GROUP_LIMITS
    found = [
        measured(case(1.05, group=group), CPU=1.0, GPU=2.0, AUTO=time)
        for time in (0.8, 1.1)
    ]
    (line,) = group_sentences(found)
    assert line.startswith(f"{group}: 0.938 over the best")
    assert line.endswith(": met")
    assert list(group_sentences([])) == []


def test_every_case_has_a_name_of_its_own() -> None:
    assert len({each.name for each in CASES}) == len(CASES)


def test_all_kinds_of_work_have_a_row() -> None:
    names = {each.name for each in CASES}
    assert names >= set(CO_EXECUTED)
    for network, (_, small, large) in NETWORKS.items():
        assert {f"{network} step, batch {batch}" for batch in (small, large)} <= names


@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_learns(name: str) -> None:
    made, small, _ = NETWORKS[name]
    network = made(min(small, 2))
    network.loss(network.model, *network.batch).backward()
    assert all(each.grad is not None for each in network.model.parameters())


def test_a_process_times_a_case_under_its_mapping() -> None:
    (small,) = (each for each in CASES if each.name.startswith("ns added per op, one"))
    process = MappingProcess("CPU")
    try:
        assert 0 < process.seconds(small, 1) < 60
        assert "aten::" in process.op_report()
        assert "aten::" not in process.op_report()
    finally:
        process.close()


@pytest.fixture
def no_work(monkeypatch: pytest.MonkeyPatch) -> None:
    def made_up(of: AutoCase, *_: object) -> Measured:
        seconds = dict.fromkeys((*of.limit.against, of.auto), 1.0)
        return Measured(of, (seconds, seconds))

    monkeypatch.setattr(run, "_measure", made_up)
    monkeypatch.setattr(run, "memory_gain", lambda: 1.25)


@pytest.mark.usefixtures("no_work")
def test_the_files_are_written(tmp_path: Path) -> None:
    request = Request(
        json=tmp_path / "auto.json",
        plot=tmp_path / "auto.png",
        markdown=tmp_path / "auto.md",
    )
    assert request.json
    assert request.plot
    assert request.markdown
    request.markdown.write_text(f"# A\n\n{SECTION.begin}\nold\n{SECTION.end}\n\nB\n")
    assert run.run_auto(request) == 0
    data = json.loads(request.json.read_text())
    assert [each["case"] for each in data["cases"]] == [each.name for each in CASES]
    assert data["cases"][0]["verdict"] == "met"
    assert request.plot.read_bytes().startswith(b"\x89PNG")
    page = request.markdown.read_text()
    assert "| MLP step, batch 16 |" in page
    assert "all cores together reach 1.25 times the rate of one" in page
    assert page.endswith("\nB\n")
    assert "old" not in page


@pytest.mark.usefixtures("no_work")
def test_bad_requests_are_refused_before_any_work(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A\n")
    for request, reason in (
        (Request(html=tmp_path / "auto.html"), "--html is not for the suite auto"),
        (Request(rows="nothing*"), "no row of the suite auto"),
        (Request(plot=tmp_path / "auto.nonsense"), "matplotlib writes"),
        (Request(markdown=page), "it has 0 sections, not one"),
        (Request(markdown=page, quick=True), "wants whole suites"),
        (Request(json=tmp_path / "none" / "auto.json"), "can't be written"),
    ):
        with pytest.raises(BadRequest, match=reason):
            run.run_auto(request)

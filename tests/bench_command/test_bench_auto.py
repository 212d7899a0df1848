"""The suite `auto`: its verdicts on times that are made up, and one case for real."""

import pytest

from xpurt.bench.auto.cases import ALONE, CASES, GROUP_LIMITS, AutoCase, Limit
from xpurt.bench.auto.run import Measured, Worker, _groups, _table


def case(most: float, against: tuple[str, ...] = ALONE, group: str = "") -> AutoCase:
    return AutoCase("made up", lambda: lambda: None, Limit(most, against), group=group)


def test_the_best_single_device_counts() -> None:
    found = Measured(case(1.05), {"CPU": 2.0, "GPU": 1.0, "AUTO": 1.04}, 1.0)
    assert found.ratio == pytest.approx(1.04)
    assert found.is_met
    found = Measured(case(1.05, ("CPU",)), {"CPU": 1.0, "AUTO": 1.06}, 1.0)
    assert not found.is_met


def test_together_is_as_if_each_did_its_part() -> None:
    together = AutoCase("made up", lambda: lambda: None, Limit(1 / 0.85, ALONE, True))
    found = Measured(together, {"CPU": 3.0, "GPU": 1.5, "AUTO": 1.1}, 1.0)
    assert found.ratio == pytest.approx(1.1)
    assert found.is_met


def test_a_table_has_a_row_per_case() -> None:
    found = Measured(case(0.5), {"CPU": 2e-3, "GPU": 3e-3, "AUTO": 1.5e-3}, 0.98)
    (row,) = _table([found]).splitlines()[2:]
    assert row.split()[-7:] == [
        "2.000",
        "3.000",
        "1.500",
        "0.750",
        "0.500",
        "no",
        "0.98",
    ]


def test_a_group_is_judged_by_its_geometric_mean() -> None:
    (group,) = GROUP_LIMITS
    times = [0.9, 1.1]
    found = [
        Measured(case(1.05, group=group), {"CPU": 1.0, "GPU": 2.0, "AUTO": t}, 1.0)
        for t in times
    ]
    (line,) = _groups(found)
    assert line.startswith(f"{group}: 0.995 over the best")
    assert line.endswith(": met")
    assert list(_groups([])) == []


def test_every_case_has_a_name_of_its_own() -> None:
    assert len({each.name for each in CASES}) == len(CASES)


def test_a_worker_times_a_case_under_its_mapping() -> None:
    (small,) = (each for each in CASES if "1 element" in each.name)
    worker = Worker("CPU")
    try:
        assert 0 < worker.seconds(small, 1) < 60
        assert worker.cpu_s() > 0
    finally:
        worker.close()

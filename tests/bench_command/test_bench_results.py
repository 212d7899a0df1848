"""Whether results meet their targets, as numbers and as text."""

import json
from dataclasses import replace

import pytest
import torch

from bench_command.made_up import FAILED, FAST, LIMITS, SLOW, ratio, results, suite
from xpurt_tools.bench.report import (
    duration,
    limits_sentence,
    suite_table,
    target_table,
)
from xpurt_tools.bench.results import OtherResult, SuiteResult, geomean
from xpurt_tools.bench.row import Mean, Row, Work


def no_work(device: torch.device) -> Work:
    raise NotImplementedError


def test_a_geomean_is_of_the_rows_that_were_measured() -> None:
    assert geomean([ratio(0.5), None, ratio(2.0)]) == pytest.approx(1.0)
    assert geomean([None]) is None
    assert results().geomean == pytest.approx(1.0)
    assert results().neutral_geomean == pytest.approx(1.6**0.5)


def test_a_target_is_met_or_not_or_not_measured() -> None:
    assert results(target=1.01).met is True
    assert results(target=0.99).met is False
    assert SuiteResult(suite(), (FAILED,)).met is None
    assert results().neutral_met is None  # there is no such target
    assert results(neutral_target=1.3).neutral_met is True
    assert results(neutral_target=1.2).neutral_met is False


def test_single_rows_have_a_limit_if_they_are_large_or_the_suite_says_so() -> None:
    assert [row.name for row in results().over_the_limit] == ["slow"]
    small = SuiteResult(suite(), (replace(SLOW, elements=10),))
    assert small.over_the_limit == []
    strict = SuiteResult(suite(row_limit=1.25), (replace(SLOW, elements=10),))
    assert [row.name for row in strict.over_the_limit] == ["slow"]


def test_a_row_can_have_a_limit_of_its_own() -> None:
    rows = (Row("fast", no_work, at_most=0.4), Row("slow", no_work))
    found = results(rows=rows)
    assert [row.name for row in found.over_the_limit] == ["fast", "slow"]
    text = suite_table(found, LIMITS)
    assert "rows over their limits: fast 0.50, slow 2.00" in text
    lax = results(rows=(Row("slow", no_work, at_most=2.5),))
    assert lax.over_the_limit == []


def test_limits_for_the_mean_of_some_rows() -> None:
    found = results(means=(Mean("f*", 0.45), Mean("nothing", 1.0)))
    text = suite_table(found, LIMITS)
    assert "geomean of 'f*' 0.50, at most 0.45: not met" in text
    assert "nothing" not in text.partition("\n")[2]


def test_limits_for_other_libraries() -> None:
    rows = (Row("slow", no_work, others_at_most={"dpnp": 0.4, "absent": 1.0}),)
    lines = suite_table(results(rows=rows), LIMITS).splitlines()
    assert "slow: 0.50 of dpnp, at most 0.40: not met" in lines
    assert not any("absent" in line for line in lines)


def test_limits_of_processor_time() -> None:
    """The time that passes has no limit then."""
    fast = replace(FAST, processor=ratio(3.0))
    slow = replace(
        SLOW, processor=ratio(0.5), others={"dpnp": OtherResult(processor=ratio(7.0))}
    )
    found = SuiteResult(suite(processor=True, row_limit=1.02), (fast, slow))
    assert [row.name for row in found.over_the_limit] == ["fast"]
    assert found.geomean == pytest.approx(1.5**0.5)
    head, _, first, second = suite_table(found, LIMITS).splitlines()[1:5]
    assert head.split()[-4:] == ["processor", "at", "most", "xpu/dpnp"]
    assert first.split()[-2:] == ["3.00", "1.02"]
    assert second.split()[-3:] == ["0.50", "1.02", "7.00"]


def test_rates_and_their_shares_of_a_limit() -> None:
    assert FAST.gb_per_s == pytest.approx(10.0)
    assert SLOW.gflop_per_s == pytest.approx(200.0)
    ((row, share),) = results().shares(LIMITS)
    assert (row.name, share) == ("fast", pytest.approx(0.5))
    assert results(reach=None).shares(LIMITS) == []
    assert results().shares(replace(LIMITS, triad=0.0)) == []


def test_tiers_of_several_ops_are_counted() -> None:
    assert FAST.tier == "sycl"
    assert SLOW.tier == "native 12, sycl 3"
    assert FAILED.tier == "-"


def test_the_table_of_a_suite() -> None:
    lines = suite_table(results(neutral_target=1.0), LIMITS).splitlines()
    assert lines[0] == "made-up: nothing real"
    fast, slow = (line.split() for line in lines[3:5])
    assert fast == ("fast 2.00 ms 1.00 ms 0.50 0.40-0.60 0.80 sycl 10.0 50%".split())
    assert (
        slow
        == (
            "slow 1.00 ms 2.00 ms 2.00 1.90-2.10 2.00 native 12, sycl 3 200.0 50% 0.50"
        ).split()
    )
    assert lines[5:] == [
        "geomean 1.00, at most 1.00: met",
        "without page faults 1.26, at most 1.00: not met",
        "0 of 1 rows reach 85% of triad; the least is 50%, fast",
        "rows of 65,536 elements or more over 1.50: slow 2.00",
        "failed: RuntimeError: no such kernel",
    ]


def test_the_table_of_targets() -> None:
    line = target_table([results(neutral_target=1.0)]).splitlines()[2]
    assert line.split() == "made-up 1.00 1.00 met 1.26 1.00 not met 2 1 1".split()
    assert "not measured" in target_table([SuiteResult(suite(), (FAILED,))])


def test_limits_that_could_not_be_measured_are_said() -> None:
    text = limits_sentence(replace(LIMITS, onednn_f32=0.0))
    assert "triad 20.0 GB/s" in text
    assert "alone not measured in f32, 800.0 GFLOP/s in bf16" in text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (1.234e-6, "1.23 us"),
        (4.56e-2, "45.6 ms"),
        (0.4567, "457 ms"),
        (7.891, "7.89 s"),
    ],
)
def test_durations_have_three_digits(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_the_data_is_json() -> None:
    data = json.loads(json.dumps(results().as_data(LIMITS)))
    assert data["name"] == "made-up"
    assert data["met"] is True
    assert data["over_the_limit"] == ["slow"]
    assert data["shares"] == {"fast": pytest.approx(0.5)}
    fast, slow, failed = data["rows"]
    assert fast["ratio"] == {"value": 0.5, "low": 0.4, "high": 0.6}
    assert fast["gb_per_s"] == pytest.approx(10.0)
    assert slow["tiers"] == {"native": 12, "sycl": 3}
    assert (failed["ratio"], failed["error"]) == (None, "RuntimeError: no such kernel")

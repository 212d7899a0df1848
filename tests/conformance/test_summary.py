"""Numbers and text of the report, from results that are made up."""

import json

from xpurt.reports import describe_machine
from xpurt_tools.conformance.report import failures, headline, summary
from xpurt_tools.conformance.report_html import conformance_page
from xpurt_tools.conformance.results import Failure, Result, from_data, tallies, tally
from xpurt_tools.conformance.settings import Settings

WRONG = Result(
    "add",
    "int64",
    "pointwise",
    "failed",
    trials={"values": 3, "failed": 1},
    failed=1,
    failures=[Failure("out=", 2, "(int64[2x2], <1>)", "2 is not 3\nby much")],
    tiers={"native": 3},
)
RESULTS = [
    Result("add", "float32", "pointwise", trials={"values": 9}, tiers={"sycl": 4}),
    WRONG,
    Result("rand", "float32", "other", trials={"random": 1}, tiers={"native": 2}),
    Result("geqrf", "bool", "linalg", "not on the CPU", trials={"raised": 4}),
    Result("mm", "float32", "linalg", tiers={"onednn": 1, "native": 1}),
]


def test_the_rate_is_over_what_runs_on_the_cpu() -> None:
    total = tally(RESULTS)
    assert (total.pairs, total.passed, total.not_on_cpu) == (4, 3, 1)
    assert total.rate == 0.75
    assert total.kernel_share == 0.5
    assert dict(total.tiers) == {"sycl": 1, "native": 3, "onednn": 1}
    assert tally([]).rate == 1.0


def test_tallies_are_apart() -> None:
    by_category = tallies(RESULTS, "category")
    assert list(by_category) == ["pointwise", "other", "linalg"]
    assert by_category["pointwise"].passed == 1
    assert tallies(RESULTS, "dtype")["float32"].pairs == 3


def test_the_table_has_a_row_per_category_and_dtype() -> None:
    lines = summary(RESULTS).splitlines()
    cells = {line.split()[0]: line.split()[1:] for line in lines if line}
    assert cells["pointwise"] == "2 1 50.00% 50.0% 0.0% 50.0% 0.0%".split()
    assert cells["all"][:3] == "4 3 75.00%".split()
    assert cells["int64"][:3] == "1 0 0.00%".split()


def test_the_headline_says_what_was_not_compared() -> None:
    text = headline(RESULTS, "CPU", 7)
    assert "3 of 4 pairs are right on xpu, 75.00%; 50.0% took SYCL or oneDNN" in text
    assert "1 of them draw numbers" in text
    assert "1 pairs that raise on the CPU too, 7 that PyTorch does not list" in text


def test_a_failure_shows_its_sample_and_message() -> None:
    assert failures(RESULTS).splitlines() == [
        "failed: add int64 (1 of 4 comparisons)",
        "    out=, sample 2: (int64[2x2], <1>)",
        "        2 is not 3",
        "        by much",
    ]


def test_the_page_has_the_same_and_is_escaped() -> None:
    machine = describe_machine([], mapping="AUTO", policy="auto")
    html = conformance_page(RESULTS, Settings(mapping="AUTO"), machine, left_out=7)
    assert "75.00%" in html
    assert "7 that PyTorch does not list" in html
    assert "&lt;1&gt;" in html
    assert "<1>" not in html


def test_results_survive_json() -> None:
    for result in RESULTS:
        assert from_data(json.loads(json.dumps(result.as_data()))) == result

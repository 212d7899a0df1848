"""All suites in one command, without measuring one."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from bench_command.made_up import LIMITS
from xpurt.command_line import cli
from xpurt_tools import bench
from xpurt_tools.bench import SUITES, Request, all_suites
from xpurt_tools.bench.all_suites import Part, parts_of, run_all
from xpurt_tools.bench.request import check_files
from xpurt_tools.bench.results import RowResult, SuiteResult
from xpurt_tools.bench.timing import Ratio

ONE = Ratio(1.0, 1.0, 1.0)
TWO = SUITES[:2]


def test_each_suite_gets_its_share_and_what_is_not_judged_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given: dict[str, float] = {}

    def start(part: Part, command: Sequence[str]) -> int:
        options = dict(zip(command[4::2], command[5::2], strict=False))
        given[part.suite] = float(command[command.index("--minutes") + 1])
        if part.suite == "auto":
            return 1
        suite = next(each for each in TWO if each.name == options["--suite"])
        first, second, *_ = (row.name for row in suite.rows)
        found = SuiteResult(
            suite,
            (RowResult(first, ratio=ONE, load=1.5), RowResult(second, error="broke")),
        )
        path = Path(command[command.index("--json") + 1])
        path.write_text(json.dumps({"suites": [found.as_data(LIMITS)]}))
        return 0

    assert run_all(tmp_path, 100, TWO, start) == 1
    weights = {part.suite: part.parts for part in parts_of(TWO)}
    of_first = given[TWO[0].name] / 100
    assert of_first == pytest.approx(
        weights[TWO[0].name] / sum(weights.values()), abs=0.01
    )
    assert given["auto"] == pytest.approx(100, abs=1)  # nothing took time before
    said = (tmp_path / "not_judged.txt").read_text()
    assert said in capsys.readouterr().out
    assert said.splitlines()[0] == "auto: the process failed"
    for suite in TWO:
        assert f"{suite.name}: {suite.rows[0].name}: too busy to judge\n" in said
        assert f"{suite.name}: {suite.rows[1].name}: broke\n" in said
    page = (tmp_path / "performance.md").read_text()
    assert all(f"<!-- bench {suite.name}: begin" in page for suite in TWO)


def test_the_command_takes_each_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[Request] = []

    def take(request: Request) -> int:
        check_files(request, lambda text: None)
        taken.append(request)
        return 0

    monkeypatch.setattr(bench, "run_bench", take)
    monkeypatch.setattr(bench, "run_auto", take)
    codes = {
        part.suite: cli.main(all_suites._command(part, tmp_path, 1.0)[3:])
        for part in parts_of(SUITES)
    }
    assert codes == dict.fromkeys(codes, 0)
    assert [request.suites[0] for request in taken] == list(codes)


def test_one_thread_is_for_processor_time() -> None:
    parts = {part.suite: part for part in parts_of(SUITES)}
    assert parts["compile"].one_core
    assert parts["compile"].variables["OMP_NUM_THREADS"] == "1"
    assert not parts["dispatch"].one_core
    assert parts["compile-eager"].mapping == "GPU"


@pytest.mark.parametrize(
    "arguments",
    [
        ["--all"],
        ["--report", "folder"],
        ["--all", "--report", "folder", "--suite", "conv"],
        ["--minutes", "0"],
    ],
)
def test_what_is_given_without_meaning_is_refused(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    try:
        code = cli.main(["bench", *arguments])
    except SystemExit as left:
        code = int(left.code or 0)
    assert code in (1, 2)
    assert not list(tmp_path.iterdir())

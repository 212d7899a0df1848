"""The command from end to end on suites that take a moment."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import xpurt
from bench_command.made_up import LIMITS
from xpurt.command_line import cli
from xpurt_tools.bench import SUITES, BadRequest, Request, run_bench
from xpurt_tools.bench.row import Row, Suite, Unavailable, Work, on
from xpurt_tools.bench.timing import Budget

SHORT = Budget(seconds=10, fewest=2, most=2)


def refuse(device: torch.device) -> Work:
    raise RuntimeError("it broke\nand more")


def lack(device: torch.device) -> Work:
    raise Unavailable("no such thing")


def break_later(x: torch.Tensor) -> torch.Tensor:
    if x.device.type == "xpu":
        raise ValueError("not on xpu")
    return x


TINY = Suite(
    "tiny",
    "a few rows",
    target=1.0,
    rows=(
        on("add", torch.add, (8,), (8,)),
        Row("broken", refuse),
        Row("lacking", lack),
        on("broken on xpu", break_later, (8,)),
        on("gradient", torch.mm, (8, 8), (8, 8), backward=True),
        on("long", torch.neg, (8,), long=True),
    ),
)
OTHER = Suite("other", "one row", target=1.0, rows=(on("exp", torch.exp, (8,)),))


def bench(request: Request, *suites: Suite) -> int:
    """Under the mapping that the test runs under."""
    here = replace(request, mapping=xpurt.get_xpu_mapping())
    return run_bench(here, suites or (TINY, OTHER), SHORT, LIMITS, load=lambda: 1.0)


def test_a_disturbed_row_is_in_no_mean(
    xpu: torch.device, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "out.json"
    request = Request(json=path, mapping=xpurt.get_xpu_mapping())
    slow = replace(OTHER, target=0.0, row_limit=0.0)
    assert run_bench(request, (slow,), SHORT, LIMITS, load=lambda: 1.5) == 0
    text = capsys.readouterr().out
    assert "too busy to judge, and in no mean: exp (load 1.50)\n" in text
    (suite,) = json.loads(path.read_text())["suites"]
    assert suite["disturbed"] == ["exp"]
    assert suite["geomean"] is None
    assert suite["over_the_limit"] == []


def test_no_row_begins_when_the_time_is_over(
    xpu: torch.device, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bench(Request(minutes=0), OTHER) == 1
    assert "exp: not measured: the time was over\n" in capsys.readouterr().out


def test_a_failing_row_costs_a_row(
    xpu: torch.device, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "out.json"
    assert bench(Request(json=path)) == 0
    text = capsys.readouterr().out
    assert "broken: RuntimeError: it broke\n" in text
    assert "lacking: not here: no such thing\n" in text
    assert "broken on xpu: ValueError: not on xpu\n" in text
    tiny, other = json.loads(path.read_text())["suites"]
    errors = {row["name"]: row["error"] for row in tiny["rows"]}
    assert [name for name, error in errors.items() if not error] == [
        "add",
        "gradient",
        "long",
    ]
    assert tiny["whole"]
    assert tiny["geomean"] > 0
    assert [row["name"] for row in other["rows"]] == ["exp"]


def test_what_a_row_has_to_do_is_counted(xpu: torch.device, tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    bench(Request(json=path), TINY)
    rows = {
        row["name"]: row for row in json.loads(path.read_text())["suites"][0]["rows"]
    }
    add, gradient = rows["add"], rows["gradient"]
    assert (add["size_bytes"], add["flops"], add["elements"]) == (3 * 32, 0, 8)
    assert sum(add["tiers"].values()) == 1
    assert add["rounds"] == 2
    assert add["ratio"]["low"] <= add["ratio"]["high"]
    assert gradient["flops"] == 2 * 2 * 8**3  # a product for each of the operands
    assert (add["neutral"] is None) is False


def test_a_row_may_compare_memory(
    xpu: torch.device, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    taken = {"cpu": 4_000_000, "xpu": 6_000_000}
    row = Row("grows", lambda device: Work(lambda: taken[device.type]), in_bytes=True)
    path = tmp_path / "out.json"
    memory = Suite("memory", "", target=1.0, rows=(replace(row, at_most=1.2),))
    assert bench(Request(json=path), memory) == 0
    (found,) = json.loads(path.read_text())["suites"][0]["rows"]
    assert (found["cpu_bytes"], found["xpu_bytes"]) == (4e6, 6e6)
    assert found["ratio"]["value"] == found["neutral"]["value"] == 1.5
    text = capsys.readouterr().out
    assert "4 MB" in text
    assert "6 MB" in text
    assert "rows over their limits: grows 1.50" in text


def test_a_quick_run_leaves_long_rows_out(
    xpu: torch.device, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "out.json"
    assert bench(Request(quick=True, json=path), TINY) == 0
    (tiny,) = json.loads(path.read_text())["suites"]
    assert "long" not in [row["name"] for row in tiny["rows"]]
    assert not tiny["whole"]
    assert "of a part of the rows" in capsys.readouterr().out


def test_suites_and_rows_are_chosen_by_name(xpu: torch.device, tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    bench(Request(suites=("other",), json=path))
    assert [s["name"] for s in json.loads(path.read_text())["suites"]] == ["other"]
    bench(Request(rows="a*", json=path), TINY)
    (tiny,) = json.loads(path.read_text())["suites"]
    assert [row["name"] for row in tiny["rows"]] == ["add"]


def test_the_page_and_the_picture_are_written(
    xpu: torch.device, tmp_path: Path
) -> None:
    page, picture = tmp_path / "page.md", tmp_path / "out.png"
    bench(Request(markdown=page, plot=picture))
    assert "| add |" in page.read_text()
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_nothing_measured_is_no_success(xpu: torch.device) -> None:
    broken = replace(TINY, rows=(Row("broken", refuse),))
    assert bench(Request(), broken) == 1


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (Request(suites=("gem",)), "no suite 'gem'; there are tiny, other"),
        (Request(rows="x*"), "no row of these suites is called 'x\\*'"),
        (Request(plot=Path("out.nothing")), "out.nothing: matplotlib writes .*png"),
        (Request(quick=True, markdown=Path("a.md")), "--markdown wants whole suites"),
        (Request(json=Path("no/such/folder/a.json")), "can't be written: No such file"),
        (Request(html=Path("no/such/folder/a.html")), "can't be written: No such file"),
        (Request(markdown=Path()), "can't be written|Is a directory"),
    ],
)
def test_bad_requests_are_refused_before_the_work(
    request_: Request, error: str
) -> None:
    with pytest.raises(BadRequest, match=error):
        bench(request_)


def test_a_page_of_something_else_is_refused_before_the_work(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("Something else.\n")
    with pytest.raises(BadRequest, match=r"page\.md: it has 0 sections"):
        bench(Request(markdown=page))
    assert page.read_text() == "Something else.\n"


def test_checking_leaves_no_empty_file_behind(tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    with pytest.raises(BadRequest):
        bench(Request(json=path, markdown=tmp_path / "no" / "page.md"))
    assert not path.exists()


def test_the_command_line_says_which_suites_there_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cli.main(["bench", "--suite", "gem"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("xpurt: no suite 'gem'; there are dispatch, pointwise-64k")


def test_the_suite_auto_has_no_page(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["bench", "--suite", "auto", "--html", "out.html"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("xpurt: --html is not for the suite auto")


def test_a_missing_matplotlib_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.figure", None)
    assert cli.main(["bench", "--plot", "out.png"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line == (
        "xpurt: --plot wants matplotlib, which is not installed: "
        'pip install "xpurt[demo]"'
    )


def test_suites_are_as_the_targets_say() -> None:
    targets = {
        suite.name: (suite.target, suite.neutral_target, suite.row_limit)
        for suite in SUITES
    }
    assert targets == {
        "dispatch": (1.0, None, 1.25),
        "pointwise-64k": (1.2, None, None),
        "pointwise-1m": (0.85, None, None),
        "pointwise-16m": (0.3, 1.0, None),
        "reduce": (0.8, 1.0, None),
        "gemm": (1.02, None, 1.02),
        "gemm-bf16": (1.02, None, 1.02),
        "conv": (1.0, None, None),
        "attention": (0.9, None, None),
        "train": (0.75, None, None),
        "compile": (1.0, None, 1.02),
        "compile-eager": (0.8, None, None),
        "compile-sycl": (1.0, None, None),
        "compile-train": (0.9, None, 0.9),
        "transfer": (1.05, None, None),
        "transfer-lazy": (0.3, None, None),
        "distributed": (1.2, None, None),
        "lazy": (1.0, None, None),
        "optimize": (1.0, None, None),
        "optimize-compiled": (1.3, None, None),
        "optimize-train": (1.0, None, None),
        "cpu-kernels": (0.5, None, None),
        "language": (1.0, None, None),
    }
    for suite in SUITES:
        names = [row.name for row in suite.rows]
        assert len(set(names)) == len(names), suite.name

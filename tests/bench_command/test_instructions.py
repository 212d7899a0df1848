"""`python -m xpurt bench --instructions`."""

from pathlib import Path

import pytest

from xpurt_tools.bench import BadRequest, Request, instructions, run_instructions
from xpurt_tools.bench.instructions import Counted, rows_in

# What callgrind writes for two rows, of which one was not counted on xpu.
COUNTS = """
part: 2
desc: Trigger: Client Request: cpu add 1
events: Ir
fn=(1) main
4 100
summary: 50000
totals: 50100
part: 3
desc: Trigger: Client Request: xpu add 1
summary: 60000
part: 4
desc: Trigger: Client Request: cpu x[0], grad
summary: 70000
part: 5
desc: Trigger: Program termination
summary: 900000
"""


def test_counts() -> None:
    (row,) = rows_in(COUNTS)
    assert row == Counted("add 1", 1000, 1200)
    assert row.ratio == 1.2


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """The arguments of the counts that were asked for."""
    asked: list[tuple[str, ...]] = []

    def count(*args: str) -> list[Counted]:
        asked.append(args)
        return [Counted("add 1", 1000, 1200), Counted("sum 1", 2000, 1500)]

    monkeypatch.setattr(instructions, "count", count)
    return asked


def test_table(
    counted: list[tuple[str, ...]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_instructions(Request(suites=("dispatch",), rows="* 1")) == 0
    assert counted == [("dispatch", "* 1", "CPU")]
    text = capsys.readouterr().out
    assert "2 rows, xpu over the CPU: 0.949 in the geometric mean" in text
    assert "at most 1.20 (add 1)" in text
    assert "2,000" in text


@pytest.mark.usefixtures("counted")
def test_page(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    marks = instructions.markdown.section("dispatch-instructions")
    page.write_text(f"# Page\n{marks.begin}\n{marks.end}\nlast\n")
    assert run_instructions(Request(suites=("dispatch",), markdown=page)) == 0
    text = page.read_text()
    assert "| add 1 | 1,000 | 1,200 | 1.200 |" in text
    assert text.endswith(f"{marks.end}\nlast\n")


@pytest.mark.usefixtures("counted")
@pytest.mark.parametrize(
    ("request_", "said"),
    [
        (Request(), "one suite"),
        (Request(suites=("gemm", "dispatch")), "one suite"),
        (Request(suites=("dispatch",), quick=True), "one suite"),
        (Request(suites=("dispach",)), "no suite 'dispach'"),
        (Request(suites=("dispatch",), markdown=Path("/none/page.md")), "No such file"),
    ],
)
def test_requests_that_are_refused(request_: Request, said: str) -> None:
    with pytest.raises(BadRequest, match=said):
        run_instructions(request_)


def test_without_valgrind(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BadRequest, match=r"found none\. Install valgrind"):
        run_instructions(Request(suites=("dispatch",)))

"""`python -m xpurt simulate`, on small work."""

from pathlib import Path

import pytest

from xpurt.command_line import cli
from xpurt_tools import workloads
from xpurt_tools.commands import co_execution_table, larger_model_table, policy_table

SECTIONS = policy_table.TABLES, policy_table.CO_EXECUTION, policy_table.LARGER_MODELS
PLACES = "\n".join(f"{each.begin}\nold\n{each.end}\n" for each in SECTIONS)
PAGE = f"# AUTO\n\n{PLACES}and more\n"


@pytest.fixture(autouse=True)
def small_work(monkeypatch: pytest.MonkeyPatch) -> None:
    work = {"cholesky": lambda: workloads.cholesky(4, 512)}
    monkeypatch.setattr(policy_table, "WORKLOADS", work)
    machines = dict(list(co_execution_table.MACHINES.items())[:2])
    monkeypatch.setattr(co_execution_table, "MACHINES", machines)
    monkeypatch.setattr(co_execution_table, "SEEDS", [0])
    monkeypatch.setattr(co_execution_table, "FLEET_SEEDS", [0])
    token = dict(list(larger_model_table.WORK.items())[:1])
    monkeypatch.setattr(larger_model_table, "WORK", token)
    monkeypatch.setattr(larger_model_table, "LAYERS", 2)


def test_the_tables_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["simulate", "--devices", "1", "2"]) in (0, 1)
    lines = capsys.readouterr().out.splitlines()
    machines = [line.split("|")[1].strip() for line in lines if line.startswith("| ")]
    assert machines[:6] == [
        *("machine", "---", "alike, 1", "alike, 2", "mixed, 2", "lopsided, 2")
    ]
    assert sum(line.startswith("- eft: ") for line in lines) == 7


def test_the_tables_are_put_into_a_page(tmp_path: Path) -> None:
    page = tmp_path / "auto.md"
    page.write_text(PAGE)
    cli.main(["simulate", "--devices", "2", "--markdown", str(page)])
    text = page.read_text()
    assert text.startswith(f"# AUTO\n\n{policy_table.TABLES.begin}\n| machine |")
    assert text.endswith(f"{policy_table.LARGER_MODELS.end}\nand more\n")
    assert "| a token, bfloat16 | Arc B580 | half | " in text
    assert "- Holds: auto takes at most 1.02 of the best of CPU alone" in text
    assert "| product 2048 | 0." in text
    assert "| alike, 2 | 0." in text
    assert "| cholesky | " in text
    assert "of dmda on the geomean; slower in " in text
    assert "\nold\n" not in text


def test_a_page_without_a_place_is_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "auto.md"
    page.write_text("# AUTO\n")
    assert cli.main(["simulate", "--devices", "2", "--markdown", str(page)]) == 1
    assert page.read_text() == "# AUTO\n"
    assert "it has 0 sections, not one" in capsys.readouterr().err


def test_a_run_is_drawn(tmp_path: Path) -> None:
    picture = tmp_path / "gantt.png"
    cli.main(["simulate", "--devices", "2", "--plot", str(picture)])
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_a_broken_limit_is_an_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(policy_table, "MOST_OF_HEFT", 0.5)
    assert cli.main(["simulate", "--devices", "2"]) == 1
    assert "at most 0.50: not met" in capsys.readouterr().out


def test_one_device_leaves_nothing_to_compare(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cli.main(["simulate", "--devices", "1"]) == 1
    assert "2 devices and more; found --devices 1" in capsys.readouterr().err

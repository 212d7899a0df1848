"""Tables between markers: what is rewritten, and what stays."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from bench_command.made_up import LIMITS, MACHINE, results
from xpurt.text.markdown_section import BadMarkers, line_of
from xpurt_tools.bench import markdown
from xpurt_tools.bench.markdown import section, update
from xpurt_tools.bench.row import on


@pytest.fixture
def page(tmp_path: Path) -> Path:
    return tmp_path / "page.md"


def test_a_page_that_is_not_there_is_made(page: Path) -> None:
    update(page, [results()], LIMITS, MACHINE)
    text = page.read_text()
    assert text.startswith("# Performance\n")
    measured = section("made-up").of(text)
    assert measured.startswith("2026-01-31, xpurt 0.1.0; triad 20.0 GB/s, oneDNN 400 ")
    assert "2026-01-31: a processor, 2 cores" in section("machine").of(text)
    assert "| fast | 2.00 ms | 1.00 ms | 0.50 |" in measured
    assert "- failed: RuntimeError: no such kernel\n" in measured
    assert "| made-up | 1.00 | 1.00 | met |" in section("targets").of(text)


def test_what_is_around_the_markers_stays(page: Path) -> None:
    update(page, [results()], LIMITS, MACHINE)
    page.write_text(f"Before.\n{page.read_text()}After.\n")
    update(page, [results()], LIMITS, replace(MACHINE, date="2027-01-01"))
    text = page.read_text()
    assert text.startswith("Before.\n")
    assert text.endswith("After.\n")
    assert "2026-01-31" not in text
    assert text.count("| fast |") == 1


def test_suites_that_were_not_run_keep_their_numbers(page: Path) -> None:
    both = [results(name="one"), results(name="two")]
    update(page, both, LIMITS, MACHINE)
    later = replace(MACHINE, date="2027-01-01")
    update(page, [results(name="two", target=0.5)], LIMITS, later)
    text = page.read_text()
    _, _, one, two = section("targets").of(text).splitlines()
    assert one.startswith("| one | 1.00 | 1.00 | met |")
    assert one.endswith("| 2026-01-31 |")
    assert two.startswith("| two | 1.00 | 0.50 | not met |")
    assert two.endswith("| 2027-01-01 |")
    assert "2026-01-31" in section("one").of(text)
    assert "2026-01-31" not in section("two").of(text)


def test_part_of_a_suite_is_no_line_of_the_targets(page: Path) -> None:
    update(page, [results()], LIMITS, MACHINE)
    part = results(target=0.5, rows=(on("add", torch.add, (1,)),) * 4)
    assert not part.whole
    update(page, [part], LIMITS, replace(MACHINE, date="2027-01-01"))
    assert "2027-01-01" not in section("targets").of(page.read_text())


def test_a_page_without_the_section_is_refused_and_left_alone(page: Path) -> None:
    page.write_text("Something else.\n")
    with pytest.raises(
        BadMarkers, match=r"0 sections, not one.*\n.*bench machine: begin"
    ):
        update(page, [results()], LIMITS, MACHINE)
    of_machine = section("machine")
    twice = f"{of_machine.begin}\n{of_machine.end}\n" * 2
    with pytest.raises(BadMarkers, match="2 sections, not one"):
        markdown.check(twice, ["made-up"])
    assert page.read_text() == "Something else.\n"


def test_numbers_of_a_busy_machine_say_so(page: Path) -> None:
    update(page, [results()], LIMITS, MACHINE)
    assert "busy" not in page.read_text()
    update(page, [results()], LIMITS, replace(MACHINE, load=1.5))
    measured = section("made-up").of(page.read_text())
    assert "**Not to be trusted: the machine was busy (load 1.5 on 2 cores)" in measured


def test_a_bar_in_a_cell_is_no_column() -> None:
    assert line_of(["a|b", "c"]) == "| a\\|b | c |"

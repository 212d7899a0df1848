"""The demo's output and picture, from made-up numbers."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib.figure
import pytest

from xpurt.demo.plot import save_plot
from xpurt.demo.report import epoch_line, shares, shares_table, speed_table
from xpurt.demo.training import Epoch, History


@dataclass(frozen=True)
class Row:
    op: str
    tier: str
    device: str
    calls: int
    bytes_copied: int = 0
    time_ms: float = 0.0


ROWS = [
    Row("add", "sycl", "opencl:gpu:0", 10, 0, 1.0),
    Row("mul", "sycl", "opencl:gpu:0", 20, 0, 2.0),
    Row("add", "sycl", "opencl:cpu:0", 5, 0, 0.5),
    Row("mm", "onednn", "opencl:cpu:0", 5, 2048, 4.5),
]
HISTORIES = [
    History("xpu", [Epoch(2.0, 0.5, 10.0), Epoch(1.0, 0.9, 30.0), Epoch(0.1, 0.98, 20.0)]),
    History("cpu", [Epoch(2.0, 0.5, 40.0), Epoch(0.1, 0.98, 50.0)]),
]  # fmt: skip


def test_shares_add_up_per_device_and_tier() -> None:
    first, *rest = shares(ROWS)
    assert (first.device, first.tier) == ("opencl:gpu:0", "sycl")
    assert (first.ops, first.calls, first.time_ms) == (2, 30, 3.0)
    assert {(s.device, s.tier, s.bytes_copied) for s in rest} == {
        ("opencl:cpu:0", "sycl", 0),
        ("opencl:cpu:0", "onednn", 2048),
    }


def test_the_table_of_shares() -> None:
    lines = shares_table(shares(ROWS)).splitlines()
    assert lines[0].split() == "device tier ops calls share copied time".split()
    assert lines[2].split() == "opencl:gpu:0 sycl 2 30 75.0% 0 B 3.0 ms".split()
    assert "2.0 KiB" in lines[4]
    assert shares_table([]).splitlines()[0].startswith("device")


def test_the_first_epoch_builds_kernels_and_does_not_count_as_speed() -> None:
    assert HISTORIES[0].images_per_s == 25.0
    assert HISTORIES[1].images_per_s == 50.0
    assert History("cpu", [Epoch(2.0, 0.5, 40.0)]).images_per_s == 40.0


def test_the_table_of_speeds_has_a_line_per_device() -> None:
    _, _, xpu, cpu = speed_table(HISTORIES).splitlines()
    assert xpu.split() == ["xpu", "25", "0.1000", "98.0%"]
    assert cpu.split() == ["cpu", "50", "0.1000", "98.0%"]


def test_an_epoch_is_a_line() -> None:
    assert epoch_line(3, 10, Epoch(0.5, 0.975, 1234.0)) == (
        "epoch  3/10  loss 0.5000  test accuracy 97.5%  1,234 images/s"
    )


@pytest.mark.parametrize("rows", [ROWS, []], ids=["ops", "no ops"])
def test_the_picture_is_written(tmp_path: Path, rows: list[Row]) -> None:
    picture = tmp_path / "out.png"
    save_plot(picture, HISTORIES, shares(rows), "mapping AUTO")
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.fixture
def axes(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The axes of the picture: loss, accuracy, times."""
    figures: list[Any] = []
    figure_class = matplotlib.figure.Figure
    monkeypatch.setattr(
        figure_class, "savefig", lambda self, *_, **__: figures.append(self)
    )
    save_plot(Path("x.png"), HISTORIES, shares(ROWS), "mapping AUTO")
    return list(figures[0].axes)


def test_equal_curves_do_not_hide_each_other(axes: list[Any]) -> None:
    for of_curves in axes[:2]:
        below, above = of_curves.lines
        assert below.get_linewidth() > 2 * above.get_linewidth()
        assert below.get_color() != above.get_color()
        labels = [text.get_text() for text in of_curves.get_legend().get_texts()]
        assert labels == ["xpu", "cpu"]


def test_each_device_and_tier_has_a_bar_of_its_time_with_the_number(
    axes: list[Any],
) -> None:
    bars = [bar.get_width() for bar in axes[2].patches]
    assert sorted(bars) == [0.5, 3.0, 4.5]
    said = [text.get_text() for text in axes[2].texts]
    assert len(said) == len(bars)
    assert "0.5 ms, 6.2%" in said
    ticks = [tick.get_text() for tick in axes[2].get_yticklabels()]
    assert "sycl  |  opencl:gpu:0" in ticks
    for bar, text in zip(axes[2].patches, axes[2].texts, strict=True):
        assert text.xy[0] == bar.get_width()

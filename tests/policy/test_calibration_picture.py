"""The picture of a calibration: panels, colours, and labels that can be read."""

import itertools
import math
import sys
from pathlib import Path
from typing import Any

import pytest

from xpurt import kernels, mapping
from xpurt.calibration import picture, probe_ops
from xpurt.calibration.picture import labels_of, panels_of, ratios, spread_out
from xpurt.command_line import cli
from xpurt.kernels import Curve, Point
from xpurt.startup.extras import MissingExtra

matplotlib = pytest.importorskip("matplotlib.figure", reason="what draws the picture")


@pytest.mark.rest
def test_the_picture_is_drawn(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "crossovers.png"
    assert cli.main(["calibrate", "--show", "--plot", str(path)]) == 0
    assert path.read_bytes()[:4] == b"\x89PNG"
    said = capsys.readouterr().out
    for device in mapping.physical_devices():
        if device.kind == "cpu":
            assert f"{device}: drawn in {tmp_path}" in said
        else:
            assert f"{device}: not drawn" in said


def test_without_matplotlib_a_way_out_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtra, match=r"xpurt\[demo\]"):
        picture.save_plot(tmp_path / "out.png", [], "nothing")


def curve(name: str, *points: tuple[float, float, float], letter: str = "f") -> Curve:
    return Curve(name, letter, "alike", tuple(Point(*each) for each in points))


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The figures that were saved."""
    figures: list[Any] = []
    monkeypatch.setattr(
        matplotlib.Figure, "savefig", lambda self, *_, **__: figures.append(self)
    )
    return figures


def test_every_class_has_its_panel() -> None:
    measured = {one.cost_class for one in probe_ops.PROBE_OPS}
    curves = [curve(name, (1, 1, 1)) for name in measured]
    panels = panels_of(curves)
    assert "others" not in panels
    assert len(panels) <= 12
    assert sorted(c.cost_class for some in panels.values() for c in some) == sorted(
        measured
    )
    assert list(panels_of([curve("of tomorrow", (1, 1, 1))])) == ["others"]


def test_labels_tell_the_lines_of_a_panel_apart() -> None:
    for kind, some in panels_of(kernels.shipped().curves).items():
        labels = labels_of(some)
        assert len(set(labels)) == len(labels), kind


def test_there_is_no_legend_and_a_colour_is_a_tier(drawn: list[Any]) -> None:
    picture.save_plot(Path("x.png"), kernels.shipped().curves, "shipped")
    (figure,) = drawn
    assert len(figure.axes) == 12
    for axes in figure.axes:
        assert axes.get_legend() is None
        assert axes.get_xlim() == figure.axes[0].get_xlim()
        assert axes.get_ylim() == figure.axes[0].get_ylim()
        lines = [line for line in axes.lines if line.get_color() != "black"]
        for line in lines:
            logs = [math.log(y) for y in line.get_ydata()]
            color = picture.KERNEL_COLOR if sum(logs) > 0 else picture.NATIVE_COLOR
            assert line.get_color() == color
            assert min(logs) * max(logs) >= -1e-9  # ends where the tiers are equal


def test_labels_lie_apart_and_within_their_panel(drawn: list[Any]) -> None:
    picture.save_plot(Path("x.png"), kernels.shipped().curves, "shipped")
    for axes in drawn[0].axes:
        low, high = (math.log(each) for each in axes.get_ylim())
        labels = [text for text in axes.texts if hasattr(text, "arrow_patch")]
        places = sorted(math.log(label.xyann[1]) for label in labels)
        assert len(labels) <= 8
        assert low < places[0]
        assert places[-1] < high
        for a, b in itertools.pairwise(places):
            assert b - a > 0.08 * (high - low)


def test_above_one_the_kernel_is_quicker() -> None:
    assert ratios(curve("cheap", (1, 2.0, 4.0), (2, 9.0, 3.0))) == [0.5, 3.0]


@pytest.mark.parametrize(
    ("heights", "expected"),
    [
        ([0.0, 5.0], [0.0, 5.0]),
        ([0.0, 0.0], [-0.5, 0.5]),
        ([3.0, 0.0, 0.2], [3.0, -0.4, 0.6]),
        ([0.0, 0.1, 1.0], [pytest.approx(-0.6333, abs=1e-3), pytest.approx(0.3667, abs=1e-3), pytest.approx(1.3667, abs=1e-3)]),
        ([9.0, 9.0], [4.0, 5.0]),
    ],
)  # fmt: skip
def test_labels_are_spread_out(heights: list[float], expected: list[float]) -> None:
    assert spread_out(heights, 1.0, 5.0) == expected

"""A calibration measures how busy the machine is, reports it, and may be discarded."""

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from policy_machine import BusyWatch, QuietWatch

import xpurt
from xpurt import kernels, mapping
from xpurt.calibration import noise, run
from xpurt.calibration.noise import Noise, Spent, Watch
from xpurt.command_line import cli
from xpurt.errors import NoisyError


def seen(*spent: Spent, looks: int = 12) -> Noise:
    """The noise found by a watch whose clocks give `spent` in turn."""
    rounds: Iterator[Spent] = itertools.cycle(spent)
    with Watch(lambda: [next(rounds)]) as watch:
        for _ in range(looks):
            watch.look()
    return watch.noise()


def test_a_quiet_machine_has_no_faults() -> None:
    found = seen(Spent(1.02, 1.0), Spent(1.05, 1.04))
    assert found.faults() == []
    assert found.lost == pytest.approx(0.0145, abs=1e-3)
    assert found.slowed == pytest.approx(1.02)


def test_a_few_interruptions_do_no_harm() -> None:
    """Minima hide them: one sample in twelve."""
    usual = [Spent(1.0, 1.0)] * 11
    assert seen(*usual, Spent(2.5, 1.0)).faults() == []


def test_time_of_other_programs_is_lost() -> None:
    found = seen(Spent(1.6, 1.0))
    assert found.lost == pytest.approx(0.375)
    (fault,) = found.faults()
    assert "other programs took 38% of the processors' time" in fault
    assert "15% is the most" in fault


def test_processors_that_slow_down_are_seen() -> None:
    found = seen(Spent(1.0, 1.0), *[Spent(1.8, 1.8)] * 5)
    assert found.lost == 0
    (fault,) = found.faults()
    assert "1.8 times as long as at best" in fault


def test_rounds_that_are_unlike_are_seen() -> None:
    with Watch(lambda: [Spent(1.0, 1.0)]) as watch:
        watch.look()
        for rounds in ([10.0, 30.0], [7.0, 20.0, 14.0], [5.0, 5.0], [3.0]):
            watch.compare(rounds)
    assert watch.noise().unlike == pytest.approx(2.0)
    (fault,) = watch.noise().faults()
    assert "repeated times were 2.0 times" in fault


def test_the_work_that_is_measured_is_real() -> None:
    with Watch() as watch:
        for _ in range(3):
            watch.look()
    spent = watch._spent
    assert len(spent) == 3 * watch._threads
    for each in spent:
        assert 0 < each.processor <= each.wall * 1.01
        assert each.processor > noise._WORK_S / 10


def test_a_busy_machine_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "Watch", BusyWatch)
    said: list[str] = []
    with xpurt.xpu_mapping("CPU") as placement:
        identity = mapping.identity(placement.ordinals[0][0])
        with pytest.raises(NoisyError) as error:
            xpurt.calibrate(report=said.append)
        assert kernels.known_costs(identity, "cpu")[0] is None
    assert list(folder.glob("costs-*")) == []
    assert any("other programs took 50%" in line for line in said)
    text = str(error.value)
    for part in ("requested", str(placement.ordinals[0][0]), "took 50%", "--force"):
        assert part in text


def test_what_was_kept_before_stays(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with xpurt.xpu_mapping("CPU"):
        (found,) = xpurt.calibrate()
        path = kernels.calibration_path(found.identity)
        before = path.read_bytes()
        monkeypatch.setattr(run, "Watch", BusyWatch)
        with pytest.raises(NoisyError):
            xpurt.calibrate()
    assert path.read_bytes() == before


def test_force_keeps_it_and_says_so(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(run, "Watch", BusyWatch)
    with xpurt.xpu_mapping("CPU"):
        assert cli.main(["calibrate"]) == 1
        assert "--force" in capsys.readouterr().err
        assert cli.main(["calibrate", "--force"]) == 0
        assert cli.main(["calibrate", "--show"]) == 0
        assert "while the machine was busy (other" in capsys.readouterr().out
        (found,) = xpurt.calibrate(force=True)
    assert "busy" in found.measured


def test_one_device_that_is_quiet_is_kept(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watches = iter([QuietWatch, BusyWatch])
    monkeypatch.setattr(run, "Watch", lambda: next(watches)())
    with xpurt.xpu_mapping("explicit") as placement:
        if len(placement.ordinals) != 2:
            pytest.skip("not two devices")
        (quiet,), (busy,) = placement.ordinals
        with pytest.raises(NoisyError) as error:
            xpurt.calibrate()
    assert str(busy) in str(error.value)
    assert str(quiet) not in str(error.value)
    assert len(list(folder.glob("costs-*"))) == 1

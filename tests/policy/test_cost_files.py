"""Files of costs: their text, and which of them are used."""

import dataclasses
import json
import os
import warnings
from pathlib import Path

import pytest
import torch

from xpurt import config, kernels
from xpurt.kernels import (
    BadCosts,
    Calibration,
    Curve,
    Identity,
    Point,
    Rates,
    calibration_path,
    keep_calibration,
    kept_calibration,
    shipped,
)
from xpurt.kernels.costs import calibration_store
from xpurt.kernels.costs.curves import from_text, merged, to_text

IDENTITY = kernels.identity_of("A device", "A platform", "1.2.3", 8)
CURVE = Curve(
    "cheap", "f", "alike", (Point(1024, 1.5, 10), Point(4096, 5, 11), Point(65536, 80, 20))
)  # fmt: skip
CALIBRATION = Calibration(IDENTITY, "today", Rates(*range(1, 9)), (CURVE,))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of calibrations; no warning was given yet."""
    made = dataclasses.replace(config.config(), cache_folder=tmp_path / "made")
    monkeypatch.setattr(calibration_store, "config", lambda: made)
    monkeypatch.setattr(calibration_store, "_warned", set())
    return made.cache_folder


def test_text_and_back() -> None:
    assert from_text(to_text(CALIBRATION)) == CALIBRATION


@pytest.mark.parametrize("instructions", calibration_store.SHIPPED)
def test_a_shipped_table_is_whole(instructions: str) -> None:
    curves = shipped(instructions).curves
    assert {"cheap", "dear", "reduction", "softmax", "matmul"} <= {
        curve.cost_class for curve in curves
    }
    assert "2026" in shipped(instructions).measured
    assert instructions in shipped(instructions).measured
    classes = {kernels.cost_class(row) for row in kernels.ROWS}
    assert {curve.cost_class for curve in curves} <= classes


@pytest.mark.parametrize(
    ("capability", "amx", "table"),
    [
        ("AVX512", True, "AMX"),
        ("AVX512", False, "AVX512"),
        ("AVX2", False, "AVX2"),
        ("DEFAULT", False, "AVX2"),
    ],
)
def test_the_processor_chooses_the_shipped_table(
    capability: str, amx: bool, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: capability)
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"amx_bf16": amx})
    shipped.cache_clear()
    try:
        assert shipped() == shipped(table)
    finally:
        shipped.cache_clear()


def test_curves_are_replaced_class_by_class() -> None:
    other = dataclasses.replace(CURVE, cost_class="dear")
    bfloat16 = dataclasses.replace(CURVE, letter="b")
    assert merged([CURVE, bfloat16, other], [bfloat16]) == (other, bfloat16)


def test_where_a_kernel_wins() -> None:
    crossover = CURVE.crossover()
    assert crossover is not None
    assert 4096 < crossover < 65536
    slow = dataclasses.replace(CURVE, points=(Point(1024, 1, 2), Point(2048, 2, 3)))
    assert slow.crossover() is None
    fast = dataclasses.replace(CURVE, points=(Point(1024, 2, 1), Point(2048, 3, 2)))
    assert fast.crossover() == 0


def test_what_is_kept_is_found(folder: Path) -> None:
    assert kept_calibration(IDENTITY) is None
    path = keep_calibration(CALIBRATION)
    assert path.parent == folder
    assert path.stat().st_mode & 0o777 == 0o600
    assert folder.stat().st_mode & 0o777 == 0o700
    assert kept_calibration(IDENTITY) == CALIBRATION


def test_each_number_of_threads_has_its_own(folder: Path) -> None:
    keep_calibration(CALIBRATION)
    assert kept_calibration(dataclasses.replace(IDENTITY, threads=63)) is None


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("device", "Another", "of another device: A device, here it is Another"),
        ("driver", "1.2.4", "of another driver: 1.2.3, here it is 1.2.4"),
        ("torch", "3.0", "of another PyTorch"),
    ],
)
def test_another_s_file_is_not_used(
    folder: Path, field: str, value: str, said: str
) -> None:
    here = dataclasses.replace(IDENTITY, **{field: value})
    path = keep_calibration(CALIBRATION)
    if path != calibration_path(here):  # as if it had been copied from there
        path.replace(calibration_path(here))
    with pytest.warns(UserWarning, match=said) as caught:
        assert kept_calibration(here) is None
    assert "python -m xpurt calibrate" in str(caught[0].message)


def test_it_is_said_once_of_each_file(folder: Path) -> None:
    other = dataclasses.replace(IDENTITY, device="Another")
    for identity in (IDENTITY, other):
        kept = dataclasses.replace(CALIBRATION, identity=identity)
        path = keep_calibration(kept)
        path.write_text("nonsense")
        with pytest.warns(UserWarning, match=f"{path.name} is not used: it is damaged"):
            kept_calibration(identity)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert kept_calibration(IDENTITY) is None


def rehashed(change: str, to: str) -> bytes:
    """The file with a change that its hash agrees with."""
    text = to_text(CALIBRATION).partition("\n")[2]
    assert change in text
    content = text.replace(change, to)
    return f"{kernels.costs.curves._hash(content)}\n{content}".encode()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe",
        to_text(CALIBRATION).encode()[:-20],
        to_text(CALIBRATION).replace("1.5", "1.6").encode(),
        rehashed('"format": 1', '"format": 2'),
        rehashed("1.5", "-1.5"),
        rehashed("1.5", "NaN"),
        rehashed("1.5", '"much"'),
        rehashed("[1024", "[8192"),
        rehashed('"alike"', '"odd"'),
        rehashed('"rates"', '"rate"'),
    ],
)
def test_damage_is_seen(folder: Path, content: bytes) -> None:
    keep_calibration(CALIBRATION).write_bytes(content)
    with pytest.warns(UserWarning, match="is not used"):
        assert kept_calibration(IDENTITY) is None
    keep_calibration(CALIBRATION)
    assert kept_calibration(IDENTITY) == CALIBRATION


def test_what_others_may_write_is_not_read(folder: Path) -> None:
    path = keep_calibration(CALIBRATION)
    path.chmod(0o666)
    with pytest.warns(UserWarning, match="others may write"):
        assert kept_calibration(IDENTITY) is None
    path.chmod(0o600)
    folder.chmod(0o777)
    assert kept_calibration(IDENTITY) is None
    with pytest.raises(PermissionError, match="others may write"):
        keep_calibration(CALIBRATION)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_what_belongs_to_another_user_is_not_read(folder: Path) -> None:
    os.chown(keep_calibration(CALIBRATION), 12345, -1)
    with pytest.warns(UserWarning, match="another user"):
        assert kept_calibration(IDENTITY) is None


def test_a_link_is_not_followed(folder: Path, tmp_path: Path) -> None:
    path = keep_calibration(CALIBRATION)
    path.symlink_to(path.rename(tmp_path / "elsewhere"))
    with pytest.warns(UserWarning, match="is not used"):
        assert kept_calibration(IDENTITY) is None


def test_errors_say_what_is_wrong() -> None:
    with pytest.raises(BadCosts, match="format 2, and this xpurt reads 1"):
        from_text(rehashed('"format": 1', '"format": 2').decode())
    text = json.dumps({"format": 1})
    with pytest.raises(BadCosts, match="KeyError"):
        from_text(f"{kernels.costs.curves._hash(text)}\n{text}")


def test_an_identity_is_of_this_process() -> None:
    assert isinstance(IDENTITY, Identity)
    assert IDENTITY.threads > 0
    assert len(IDENTITY.processor) == 16

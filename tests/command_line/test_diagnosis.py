"""The doctor's checks, each on a patient that the test makes."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import own_process
import pytest

from xpurt import _built_for
from xpurt.command_line import diagnosis
from xpurt.command_line.diagnosis import Finding, diagnose, missing_gpus
from xpurt.startup import driver
from xpurt.torch_versions import series_of


def test_a_finding_says_ok_or_what_to_do() -> None:
    well = Finding("torch", "2.13.0+cpu")
    ill = Finding("torch", "2.12.0", 'pip install "torch==2.13.*"')
    assert well.ok
    assert str(well).startswith("ok")
    assert not ill.ok
    assert str(ill).startswith("FAIL")
    assert '-> pip install "torch==2.13.*"' in str(ill)


def test_a_check_that_falls_ill_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    def ill() -> Iterator[Finding]:
        yield Finding("ill", "seen before it fell")
        raise OSError("no such library")

    monkeypatch.setattr(diagnosis, "CHECKS", {"ill": ill})
    first, second = diagnose()
    assert first.ok
    assert second.found == "OSError: no such library"
    assert not second.ok


@pytest.mark.parametrize(
    ("version", "ok"),
    [
        ("{built}.0", True),
        ("{built}.1+cu130", True),
        ("2.12.0", False),
        ("{built}0.0", False),
        ("2.99.0+cpu", False),
    ],
)
def test_the_wheel_has_to_be_of_the_right_series(
    version: str, ok: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is the one that the extension was built for."""
    built = series_of(_built_for.TORCH)
    version = version.format(built=built)
    monkeypatch.setattr(diagnosis, "version", lambda name: version)
    (finding,) = diagnosis.check_wheel()
    assert finding.ok is ok
    assert finding.found == version
    assert ok or finding.advice == f'pip install "torch=={built}.*"'


def test_drivers_are_listed_as_the_loader_reads_them(tmp_path: Path) -> None:
    (tmp_path / "intel.icd").write_text("libigdrcl.so\n")
    (tmp_path / "empty.icd").write_text("")
    (tmp_path / "notes.txt").write_text("no driver")
    environment = {"OCL_ICD_FILENAMES": "/a/libone.so:libtwo.so"}
    assert list(driver.listed_drivers(environment, tmp_path)) == [
        (str(tmp_path / "intel.icd"), "libigdrcl.so"),
        ("OCL_ICD_FILENAMES", "/a/libone.so"),
        ("OCL_ICD_FILENAMES", "libtwo.so"),
    ]
    elsewhere = tmp_path / "elsewhere"
    assert (
        list(driver.listed_drivers({"OCL_ICD_VENDORS": str(elsewhere)}, tmp_path)) == []
    )


def test_a_driver_that_does_not_load_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    # Once in a process: with the variable below, later tests would have no device.
    driver.prepare()
    monkeypatch.setenv("OCL_ICD_FILENAMES", "/no/such/libdriver.so")
    ill = [f for f in diagnosis.check_drivers() if not f.ok]
    assert any("/no/such/libdriver.so" in f.found for f in ill)


def test_a_node_that_cannot_be_opened_names_its_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "renderD128").touch()
    monkeypatch.setattr(diagnosis, "RENDER_NODES", tmp_path)
    (finding,) = diagnosis.check_permissions()
    assert finding.ok
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    monkeypatch.setattr(diagnosis, "group_name", lambda gid: "render")
    (finding,) = diagnosis.check_permissions()
    assert finding.advice == "sudo usermod -a -G render $USER, then log in again"


def test_a_machine_without_a_node_has_nothing_to_permit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(diagnosis, "RENDER_NODES", tmp_path)
    (finding,) = diagnosis.check_permissions()
    assert finding.ok
    assert "no GPU" in finding.found


def test_an_intel_gpu_without_a_driver_is_noticed(tmp_path: Path) -> None:
    for node, vendor in {"renderD128": "0x8086", "renderD129": "0x1002"}.items():
        (tmp_path / node / "device").mkdir(parents=True)
        (tmp_path / node / "device" / "vendor").write_text(vendor + "\n")
    (finding,) = missing_gpus(tmp_path)
    assert "renderD128" in finding.found
    assert not finding.ok


def test_the_doctor_finds_this_machine_well() -> None:
    done = run("doctor")
    assert done.returncode == 0, done.stdout + done.stderr
    subjects = {line[6:].split("  ")[0] for line in done.stdout.splitlines()}
    assert subjects >= {"torch", "loader", "extension", "driver", "device", "mapping"}
    assert {"first op", "torchrun"} <= subjects
    assert "rank 1 of 2 would get" in done.stdout


def test_the_doctor_fails_on_a_mapping_that_cannot_be() -> None:
    done = run("doctor", XPURT_MAPPING="nonsense")
    assert done.returncode == 1
    assert "nonsense" in done.stdout
    assert "Traceback" not in done.stderr


def test_the_doctor_comes_in_where_xpurt_cannot_be_imported() -> None:
    """The extension was built for another PyTorch: the program changes its version."""
    program = """
import torch, runpy, sys
torch.__version__ = "2.12.0"
sys.orig_argv = [sys.executable, "-m", "xpurt", {command!r}]
sys.argv = ["-m", {command!r}]
runpy.run_module("xpurt", run_name="__main__", alter_sys=True)
"""
    for command, told in {
        "doctor": "FAIL  extension",
        "devices": "ImportError",
    }.items():
        code = program.format(command=command)
        done = own_process.run(code, TORCH_DEVICE_BACKEND_AUTOLOAD="0")
        assert done.returncode == 1
        assert told in done.stdout + done.stderr
        assert f"was built for PyTorch {_built_for.TORCH}" in done.stdout + done.stderr


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "xpurt", *arguments],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=120,
    )

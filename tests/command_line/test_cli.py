"""The command line, in processes of its own where a device is needed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from own_process import output

import xpurt
from xpurt.command_line import cli

pytestmark = pytest.mark.takes_minutes


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "xpurt", *arguments],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_devices_lists_every_device_with_its_ordinal() -> None:
    done = run("devices", XPURT_MAPPING="explicit")
    assert done.returncode == 0, done.stderr
    head, _, *rows = done.stdout.splitlines()
    for heading in ("ordinal", "device", "driver", "memory", "SYCL filter", "uuid"):
        assert heading in head
    devices = xpurt.physical_devices()
    assert len(rows) == len(devices)
    for index, (row, device) in enumerate(zip(rows, devices, strict=True)):
        assert row.lstrip().startswith(f"xpu:{index} ")
        assert device.name in row
        assert device.filter_string in row
        assert device.uuid in row


def test_a_device_that_the_mapping_leaves_out_has_no_ordinal() -> None:
    code = "from xpurt.command_line.cli import main; main(['devices'])"
    rows = [line.split()[0] for line in output(code).splitlines()[2:]]
    assert rows == ["-"] * (len(rows) - 1) + ["xpu:0"]


def test_a_mapping_that_cannot_be_is_one_line() -> None:
    done = run("devices", XPURT_MAPPING="nonsense")
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith('xpurt: XPURT_MAPPING: mapping "nonsense" is unknown')


@pytest.mark.rest
@pytest.mark.parametrize(
    "mapping",
    [
        "AUTO",
        pytest.param("CPU", marks=pytest.mark.slow),
        # Kernels have to be built for the virtual GPU.
        pytest.param("explicit", marks=pytest.mark.slow),
        pytest.param("GPU", marks=pytest.mark.slow),
    ],
)
def test_the_demo_learns_under_every_mapping(mapping: str, tmp_path: Path) -> None:
    picture = tmp_path / "out.png"
    done = run("demo", "--mapping", mapping, "--epochs", "3", "--plot", str(picture))
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line for line in done.stdout.splitlines() if "epoch 3/3" in line]
    assert [line.split()[0] for line in lines] == ["xpu", "cpu"]
    for line in lines:
        share = line.split("test accuracy ")[1].split("%")[0]
        assert float(share) >= 97
    assert "where the ops on xpu ran" in done.stdout
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_a_missing_package_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "sklearn").mkdir()
    (tmp_path / "sklearn" / "__init__.py").write_text(
        "raise ModuleNotFoundError(name='sklearn')"
    )
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    done = run("demo", PYTHONPATH=path)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("xpurt: the demo wants scikit-learn")


@pytest.mark.parametrize(
    "arguments",
    [[], ["fly"], ["demo", "--epochs", "0"], ["demo", "--epochs", "many"]],
    ids=" ".join,
)
def test_bad_usage_is_code_2(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        cli.main(arguments)
    assert stop.value.code == 2
    assert "usage: xpurt" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("devces", 'no command "devces"; did you mean "devices"?'),
        ("Doctor", 'no command "Doctor"; did you mean "doctor"?'),
        ("zzz", 'no command "zzz"; there are devices, doctor, demo'),
    ],
)
def test_the_nearest_command_is_named(
    given: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        cli.main([given])
    assert stop.value.code == 2
    assert said in capsys.readouterr().err


def test_without_a_command_it_prints_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        cli.main([])
    assert stop.value.code == 2
    assert "list the physical devices" in capsys.readouterr().err


def test_a_file_may_be_at_home(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cli.main(["ops", "--markdown=~/ops.md"]) == 0
    assert (tmp_path / "ops.md").exists()


def test_conformance_says_which_dtypes_there_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cli.main(["conformance", "--dtypes", "float31"]) == 1
    assert "no dtype 'float31' here; there are float32" in capsys.readouterr().err

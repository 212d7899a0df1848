"""The programs in examples/, run as a user would run them, and what they give."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def run(
    *command: str | Path, folder: Path, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Runs a command with the default mapping and devices, except for `environment`."""
    env = {**os.environ, "XPURT_MAPPING": "", "XPURT_VIRTUAL_GPU": "", **environment}
    return subprocess.run(
        [sys.executable, *map(str, command)],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        timeout=400,
    )


def output(name: str, folder: Path, **environment: str) -> str:
    done = run(EXAMPLES / name, folder=folder, **environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_every_example_is_tested() -> None:
    tested = {
        *("train.py", "train_ddp.py", "mixed_devices_auto.py", "profile_timeline.py"),
        *("gpu_test_in_ci", "larger_than_gpu.py", "own_kernel_cpp"),
    }
    found = {each.name for each in EXAMPLES.iterdir() if each.name != "__pycache__"}
    assert found == tested


@pytest.mark.one_in(2)
@pytest.mark.parametrize("device", ["CPU", "GPU"])
def test_training_lowers_the_loss(tmp_path: Path, device: str) -> None:
    virtual_gpu = "strict" if device == "GPU" else "off"
    printed = output(
        "train.py", tmp_path, XPURT_MAPPING=device, XPURT_VIRTUAL_GPU=virtual_gpu
    )
    losses = [float(loss) for loss in re.findall(r"loss ([\d.]+)", printed)]
    assert len(losses) == 5
    assert losses[0] > 0.5
    assert losses[-1] < 0.1
    assert float(re.search(r"accuracy ([\d.]+)%", printed)[1]) > 95
    assert ("virtual GPU" in printed) == (device == "GPU")


@pytest.mark.rest
def test_two_processes_train_one_network(tmp_path: Path) -> None:
    options = ["--nproc-per-node", "2", "--master-addr", "127.0.0.1"]
    program = EXAMPLES / "train_ddp.py"
    done = run(
        *("-m", "torch.distributed.run", *options, program),
        folder=tmp_path,
        GLOO_SOCKET_IFNAME="lo",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    losses = [float(loss) for loss in re.findall(r"loss ([\d.]+)", done.stdout)]
    assert len(losses) == 5
    assert losses[-1] < losses[0] / 2


def test_parts_of_a_model_run_on_the_devices_that_were_asked_for(
    tmp_path: Path,
) -> None:
    printed = output("mixed_devices_auto.py", tmp_path)
    assert "devices: opencl:gpu:0, opencl:cpu:0" in printed
    assert "encoded on opencl:gpu:0" in printed
    assert "scaled on opencl:gpu:0" in printed
    # Rows of the explanation: the encoder's ops, then the head's. Behind the table is a
    # sentence for each, with the reason in parentheses.
    ops = re.findall(r"^aten::\w+ +\w.*", printed, re.MULTILINE)
    assert [line.split()[0] for line in ops] == [
        "aten::addmm",
        "aten::gelu",
        "aten::addmm",
    ]
    assert ["virtual GPU" in line.partition("the only")[0] for line in ops] == [
        *(True, True),
        False,
    ]
    moved = re.search(r"virtual GPU .*: (\d+) ops, ([\d,]+) bytes moved", printed)
    assert int(moved[1]) >= 3
    assert int(moved[2].replace(",", "")) > 64 * 256 * 4  # the batch, at least


def test_a_model_larger_than_the_gpu(tmp_path: Path) -> None:
    printed = output("larger_than_gpu.py", tmp_path)
    difference = re.search(r"largest difference (\S+)", printed)
    assert float(difference[1]) < 1e-5
    on_gpu = re.search(r"(\d+) of 40 weights are on the GPU", printed)
    assert int(on_gpu[1]) <= 64 // 4  # 4 MiB each
    assert "virtual GPU" in printed


def in_ci(folder: Path, virtual_gpu: str) -> subprocess.CompletedProcess[str]:
    arguments = ("--xpu-mapping", "GPU", "--xpu-required", f"--rootdir={folder}")
    return run(
        *("-m", "pytest", "-q", *arguments),
        folder=folder,
        XPURT_VIRTUAL_GPU=virtual_gpu,
    )


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return Path(shutil.copytree(EXAMPLES / "gpu_test_in_ci", tmp_path / "project"))


def test_the_gpu_test_runs_without_a_gpu(project: Path) -> None:
    done = in_ci(project, "strict")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout


@pytest.mark.rest
def test_the_gpu_test_fails_for_a_layer_that_is_wrong_on_a_gpu(project: Path) -> None:
    layer = project / "layer.py"
    right = "weights @ value"
    assert right in layer.read_text()
    wrong = f"{right} * (1.01 if x.is_xpu else 1)"
    layer.write_text(layer.read_text().replace(right, wrong))
    done = in_ci(project, "strict")
    assert done.returncode == 1
    assert "1 failed, 1 passed" in done.stdout
    assert "Disagreement: result" in done.stdout


@pytest.mark.rest
def test_a_kernel_of_ones_own_is_built_and_runs_in_order(tmp_path: Path) -> None:
    # PyTorch keeps the built extension there; a second run finds it.
    printed = output(
        "own_kernel_cpp/run.py", tmp_path, TORCH_EXTENSIONS_DIR=str(tmp_path / "built")
    )
    *_, numbers, refused = printed.splitlines()
    x = range(6)
    assert json.loads(numbers) == [2 * (each + 1) - each for each in x]
    assert refused == "refused: twice_ wants a contiguous float32 tensor"
    assert list((tmp_path / "built").rglob("mine.so"))


@pytest.mark.rest
def test_the_timeline_and_the_profile_show_the_kernels(tmp_path: Path) -> None:
    import torch

    done = run(EXAMPLES / "profile_timeline.py", folder=tmp_path)
    if torch.cuda._is_compiled():
        assert "NotImplementedError" in done.stderr
        return
    assert done.returncode == 0, done.stderr
    assert (
        float(re.search(r"stream 0: ([\d,]+) us", done.stdout)[1].replace(",", "")) > 0
    )
    kernels = re.findall(r"^ +[\d,]+ us  (\S+)$", done.stdout, re.MULTILINE)
    assert any("softmax" in name for name in kernels)
    assert len(kernels) == 3
    trace = json.loads((tmp_path / "profile.json").read_text())
    assert set(kernels) <= {event.get("name") for event in trace["traceEvents"]}
    # A slow host leaves gaps between the kernels.
    assert bars(tmp_path / "step.png") > 0.002


def bars(picture: Path) -> float:
    """The share of a picture that has the colour of kernels, without the legend, which is
    in the last tenth."""
    from matplotlib.image import imread

    pixels = imread(picture)
    pixels = pixels[:, : pixels.shape[1] * 9 // 10]
    red, green, blue, *_ = pixels.transpose(2, 0, 1)
    return float(((blue - red > 0.3) & (blue - green > 0.2)).mean())

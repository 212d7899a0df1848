"""A machine without a SYCL driver, or with settings that cannot be: PyTorch goes on.

Checks for an xpu never raise. The first use raises with the reason.
"""

import os
from pathlib import Path

import pytest
from own_process import output, run

NO_DRIVER = {
    "OCL_ICD_FILENAMES": "/nonexistent/libdriver.so",
    "XPURT_VIRTUAL_GPU": "",
    "XPURT_MAPPING": "",
}


@pytest.fixture
def no_driver(tmp_path: Path) -> dict[str, str]:
    """The environment of a process that finds no driver, the system's ones neither."""
    return {**NO_DRIVER, "OCL_ICD_VENDORS": str(tmp_path)}


def test_nothing_is_there_and_nothing_raises(no_driver: dict[str, str]) -> None:
    code = """
    import torch, xpurt
    print(torch.xpu.is_available(), torch.xpu.device_count())
    print(torch.accelerator.is_available(), torch.accelerator.device_count())
    print(xpurt.physical_devices(), xpurt.get_xpu_mapping())
    """
    # `output` requires silence: nothing was requested that is missing.
    assert output(code, **no_driver).splitlines() == [
        "False 0",
        "False 0",
        "() AUTO",
    ]


def test_the_rest_of_pytorch_goes_on(no_driver: dict[str, str]) -> None:
    code = """
    import copy, io, torch, xpurt
    from torch.utils.data import DataLoader
    from torch.utils.checkpoint import checkpoint
    torch.manual_seed(3)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU())
    optimizer = torch.optim.Adam(model.parameters())
    for batch in DataLoader(torch.ones(8, 3), batch_size=4, num_workers=1):
        checkpoint(model, batch, use_reentrant=False).sum().backward()
        optimizer.step()
    with torch.random.fork_rng():
        torch.rand(3)
    for backend in ("eager", "aot_eager"):
        compiled = torch.compile(copy.deepcopy(model), backend=backend)
        compiled(torch.ones(2, 3)).sum().backward()
    with torch.profiler.profile() as profile:
        model(torch.ones(3))
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    torch.load(file)
    torch.accelerator.empty_cache()
    torch.xpu.empty_cache()
    torch.__config__.show()
    print(torch.device("xpu"), torch.device("xpu", 1), torch.xpu.memory_allocated())
    """
    ended = run(code, timeout=120, **no_driver)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == "xpu xpu:1 0\n"
    assert "xpu" not in ended.stderr


def test_the_first_use_says_what_is_missing(no_driver: dict[str, str]) -> None:
    code = """
    import torch, xpurt
    for use in (
        lambda: torch.empty(1, device="xpu"),
        lambda: torch.ones(1).xpu(),
        lambda: torch.nn.Linear(1, 1).to("xpu"),
        lambda: torch.xpu.synchronize(),
        lambda: torch.xpu.Stream(),
        lambda: torch.xpu.get_device_name(),
        lambda: xpurt.set_xpu_mapping("CPU"),
    ):
        try:
            use()
        except xpurt.MappingError as error:
            print(error)
    torch.ones(3, requires_grad=True).sum().backward()
    """
    lines = output(code, **no_driver).splitlines()
    assert len(lines) == 7
    for line in lines:
        assert "found no SYCL device at all" in line
        assert "intel-opencl-rt" in line
        assert "python -m xpurt doctor" in line


@pytest.mark.parametrize(
    ("variable", "value", "told"),
    [
        ("XPURT_MAPPING", "nonsense", 'XPURT_MAPPING: mapping "nonsense" is unknown'),
        ("XPURT_MAPPING", "GPU", "wants a GPU; found opencl:cpu:0"),
        ("XPURT_VIRTUAL_GPU", "perhaps", 'XPURT_VIRTUAL_GPU="perhaps" is not possible'),
        ("XPURT_MAX_DEVICES", "many", 'XPURT_MAX_DEVICES="many" is not possible'),
    ],
)
def test_settings_that_cannot_be(variable: str, value: str, told: str) -> None:
    code = """
    import torch, xpurt
    print(torch.xpu.is_available(), torch.xpu.device_count(), torch.xpu.is_available())
    print(torch.accelerator.is_available())
    torch.ones(3, requires_grad=True).sum().backward()
    try:
        torch.empty(1, device="xpu")
    except xpurt.XpurtError as error:
        print(error)
    """
    environment = {"XPURT_VIRTUAL_GPU": "", "XPURT_MAPPING": "", variable: value}
    ended = run(code, **environment)
    assert ended.returncode == 0, ended.stderr
    answers, accelerator, error = ended.stdout.splitlines()
    assert (answers, accelerator) == ("False 0 False", "False")
    assert told in error
    assert ended.stderr.count("there is no xpu device") == 1
    assert told in ended.stderr


def test_warnings_that_are_errors_raise_nothing_either() -> None:
    code = """
    import warnings, torch, xpurt
    warnings.simplefilter("error")
    print(torch.xpu.is_available(), torch.xpu.device_count())
    """
    assert output(code, XPURT_MAPPING="nonsense") == "False 0"


def test_a_setting_that_is_put_right_is_taken() -> None:
    code = """
    import os, torch, xpurt
    os.environ["XPURT_MAPPING"] = "nonsense"
    print(torch.xpu.is_available())
    os.environ["XPURT_MAPPING"] = "CPU"
    xpurt.set_xpu_mapping("CPU")
    print(torch.xpu.is_available(), torch.ones(2, device="xpu").sum().item())
    """
    ended = run(code)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.split() == ["False", "True", "2.0"]


def test_the_doctor_says_so(no_driver: dict[str, str]) -> None:
    code = "import sys; sys.argv = ['xpurt', 'doctor']; from xpurt.command_line.cli import main; "
    ended = run(code + "sys.exit(main())", **no_driver)
    assert ended.returncode == 1
    assert "FAIL  driver       /nonexistent/libdriver.so" in ended.stdout
    assert "FAIL  device       SYCL lists no device" in ended.stdout
    assert "FAIL  mapping      AUTO, 0 ordinals" in ended.stdout
    assert "Traceback" not in ended.stderr
    assert os.environ.get("OCL_ICD_FILENAMES") != NO_DRIVER["OCL_ICD_FILENAMES"]


def test_there_is_no_accelerator(no_driver: dict[str, str]) -> None:
    """So a program that checks takes the CPU, as it would without xpurt."""
    code = """
    import torch, xpurt
    accelerator = torch.accelerator
    print(accelerator.current_accelerator(), accelerator.current_accelerator(True))
    print(accelerator.is_available(), accelerator.device_count())
    xpurt.physical_devices()
    print(accelerator.current_accelerator() or "cpu")
    """
    lines = output(code, **no_driver).splitlines()
    assert lines == ["None None", "False 0", "cpu"]


def test_with_a_driver_xpu_is_it_before_and_after_the_first_use() -> None:
    code = """
    import torch, xpurt
    print(torch.accelerator.current_accelerator())
    torch.ones(1, device="xpu")
    print(torch.accelerator.current_accelerator(), torch.accelerator.is_available())
    """
    lines = output(code, XPURT_MAPPING="CPU", XPURT_VIRTUAL_GPU="").splitlines()
    assert lines == ["xpu", "xpu True"]

"""xpu on a build of PyTorch that has CUDA compiled in, what most people install.

`tests/cuda_build.sh` makes an environment with such a build and runs every test in it.
The machine needs no CUDA GPU: where a test needs one, a library replaces NVML and
reports one.
"""

import os
import shlex
import subprocess

import pytest
import torch
from own_process import fresh_output as output
from own_process import fresh_run as run

pytestmark = pytest.mark.skipif(
    not torch.cuda._is_compiled(),
    reason="this PyTorch has no CUDA compiled in; tests/cuda_build.sh installs one",
)

UNTOUCHED = {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
NO_MAPPING = {"XPURT_MAPPING": ""}

# xpurt never initializes CUDA: a process records the callers that query its devices.
WATCH = """
import torch
asked = []
count = torch._C._cuda_getDeviceCount
def watched():
    asked.append(1)
    return count()
torch._C._cuda_getDeviceCount = watched
"""

BACKWARD = """
def backward(device):
    x = torch.ones(3, device=device, requires_grad=True)
    (2 * x).sum().backward()
    return x.grad.tolist() == [2.0] * 3
"""

FAKE_NVML = """
int nvmlInit(void) { return 0; }
int nvmlInit_v2(void) { return 0; }
int nvmlShutdown(void) { return 0; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 1; return 0; }
"""


@pytest.fixture(scope="module")
def gpu_at_hand(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a process for which NVML counts one CUDA GPU."""
    folder = tmp_path_factory.mktemp("nvml")
    source = folder / "nvml.c"
    source.write_text(FAKE_NVML)
    library = folder / "libnvidia-ml.so.1"
    compiler = shlex.split(os.environ.get("CC", "gcc"))
    subprocess.run(
        [*compiler, "-shared", "-fPIC", str(source), "-o", str(library)], check=True
    )
    path = [str(folder), os.environ.get("LD_LIBRARY_PATH", "")]
    return {"LD_LIBRARY_PATH": ":".join(filter(None, path))}


def test_xpu_is_not_compiled_in_and_works() -> None:
    code = """
    import torch, xpurt
    print(torch.xpu._is_compiled(), torch.cuda._is_compiled(), torch.xpu.is_available())
    print(torch.ones(2, device="xpu").sum().item(), torch.accelerator.current_accelerator())
    print(torch.device(0), torch.get_device_module() is torch.xpu)
    """
    assert output(code).split() == [
        *("False", "True", "True"),
        *("2.0", "xpu"),
        *("xpu:0", "True"),
    ]


PROBES = """
def answer(function):
    try:
        return repr(function())
    except Exception as error:
        return f"{type(error).__name__}: {error}".splitlines()[0]

for function in (
    torch.cuda.is_available,
    torch.cuda.device_count,
    torch.cuda.is_initialized,
    torch.cuda.is_bf16_supported,
    torch.cuda.get_arch_list,
    torch.cuda.get_gencode_flags,
    torch.cuda.current_device,
    torch.cuda.nccl.version,
    torch.cuda.is_current_stream_capturing,
    torch.cuda.memory_allocated,
    torch.cuda._is_in_bad_fork,
    torch.backends.cuda.is_built,
    torch.backends.cudnn.is_available,
    torch.backends.cudnn.version,
    torch.backends.cusparselt.is_available,
    torch.backends.cuda.is_flash_attention_available,
    lambda: torch.backends.cuda.matmul.allow_tf32,
    lambda: torch.backends.cuda.cufft_plan_cache[0].size,
    lambda: torch.empty(1, device="cuda"),
    lambda: torch.cuda.Stream(),
    lambda: torch.cuda.Event().record(),
    lambda: torch.Generator("cuda"),
    lambda: torch._C._has_cuda,
    lambda: [line for line in torch.__config__.show().splitlines() if "CU" in line],
):
    print(answer(function))
"""


LEFT_ALONE = """
import torch, xpurt
from xpurt.command_line.cli import main
print("exit", main(["devices"]))
xpurt.set_xpu_mapping("explicit")
print(torch.xpu.device_count(), torch.xpu.get_device_name(0))
try:
    xpurt.set_xpu_mapping("GPU")
except xpurt.MappingError as error:
    print(error)
xpurt.set_xpu_mapping("GPU", devices="gpu")
print(torch.xpu.get_device_name(0), torch.ones(3, device="xpu").sum().item())
"""
NVIDIA = {
    "XPURT_VIRTUAL_GPU": "strict",
    "XPURT_VIRTUAL_GPU_LIMITS": "vendor_id=4318",
    "XPURT_MAPPING": "CPU",
}


def test_a_gpu_of_cuda_is_left_to_cuda(gpu_at_hand: dict[str, str]) -> None:
    done = run(LEFT_ALONE, **NVIDIA, **gpu_at_hand)
    assert done.returncode == 0, done.stderr
    said = done.stdout
    assert "this build of PyTorch drives it as cuda" in said
    assert (
        'wants a GPU; found opencl:gpu:0 xpurt virtual GPU (strict) (left to "cuda"'
        in said
    )
    lines = said.splitlines()
    assert lines[-3].startswith("1 ")
    assert "virtual" not in lines[-3]
    assert lines[-1] == "xpurt virtual GPU (strict) 3.0"


def test_a_gpu_of_another_vendor_is_not(gpu_at_hand: dict[str, str]) -> None:
    other = {**NVIDIA, "XPURT_VIRTUAL_GPU_LIMITS": "vendor_id=1"}
    done = run(
        "import xpurt; print([d.left_to for d in xpurt.physical_devices()])",
        **other,
        **gpu_at_hand,
    )
    assert done.stdout.strip() == "['', '']"


def test_cuda_s_probes_answer_as_on_the_untouched_wheel() -> None:
    untouched = output("import torch" + PROBES, **UNTOUCHED)
    ours = output("import torch, xpurt; torch.ones(2, device='xpu')" + PROBES)
    assert ours.splitlines() == untouched.splitlines()
    assert len(ours.splitlines()) == 24


def test_backward_on_both_sides_while_active_and_while_not() -> None:
    """One switch, thrown at run time: exactly one accelerator is built."""
    code = (
        "import torch, xpurt"
        + BACKWARD
        + """
from xpurt import _C
print(backward("cpu"), backward("xpu"), torch.accelerator.current_accelerator())
for _ in range(3):
    _C.set_active(False)
    print(backward("cpu"), torch.accelerator.current_accelerator(), torch.device(0))
    _C.set_active(True)
    print(backward("cpu"), backward("xpu"), torch.accelerator.current_accelerator())
"""
    )
    lines = output(code).splitlines()
    assert lines[0] == "True True xpu"
    # Without a GPU, PyTorch gives CUDA for an accelerator that is built, not there.
    assert lines[1:] == ["True cuda cuda:0", "True True xpu"] * 3


def test_tracing_asks_for_both() -> None:
    code = """
    import torch, xpurt
    from torch._subclasses.fake_tensor import FakeTensorMode
    import xpurt.xpu
    mode = FakeTensorMode()
    print(mode.avoid_device_init)
    with mode:
        print(torch.ones(2, device="xpu").device)
    torch.xpu.is_available = lambda: False
    print(mode.avoid_device_init)
    torch.cuda.is_available = lambda: True
    print(mode.avoid_device_init)
    xpurt.xpu.uninstall()
    torch.cuda.is_available = lambda: False
    print(mode.avoid_device_init)
    """
    assert output(code).split() == ["False", "xpu:0", "True", "False", "True"]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_compiled_functions(backend: str) -> None:
    code = f"""
    import torch, xpurt
    model = torch.nn.Sequential(
        torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2), torch.nn.ReLU(),
        torch.nn.Flatten(), torch.nn.Dropout(0.0), torch.nn.Linear(72, 3),
    )
    x = torch.randn(4, 1, 8, 8)
    expected = model(x)
    expected.sum().backward()
    gradient = model[0].weight.grad.clone()
    model.zero_grad()
    model.to("xpu")
    compiled = torch.compile(model, backend="{backend}")
    found = compiled(x.to("xpu"))
    found.sum().backward()
    torch.testing.assert_close(found.cpu(), expected, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(
        model[0].weight.grad.cpu(), gradient, rtol=1e-3, atol=1e-3)
    print(found.device)
    """
    assert output(code, timeout=120) == "xpu:0"


def test_a_gpu_leaves_cuda_the_accelerator_until_a_mapping_is_asked_for(
    gpu_at_hand: dict[str, str],
) -> None:
    code = (
        WATCH
        + "import xpurt"
        + BACKWARD
        + """
assert torch.cuda.device_count() == 1
print(xpurt._C.is_active(), torch.accelerator.current_accelerator(), torch.device(0))
print(backward("cpu"), torch.xpu.is_available(), torch.xpu.device_count())
try:
    torch.ones(2, device="xpu")
except xpurt.MappingError as error:
    print(error)
xpurt.set_xpu_mapping("CPU")
print(xpurt._C.is_active(), torch.accelerator.current_accelerator(), torch.device(0))
print(torch.xpu.is_available(), backward("cpu"), backward("xpu"))
print(asked, torch.cuda.is_initialized())
"""
    )
    lines = output(code, **UNTOUCHED, **NO_MAPPING, **gpu_at_hand).splitlines()
    assert lines[:2] == ["False cuda cuda:0", "True False 0"]
    assert "set_xpu_mapping" in lines[2]
    assert "CUDA is the accelerator" in lines[2]
    assert lines[3:] == ["True xpu xpu:0", "True True True", "[] False"]


def test_the_doctor_finds_a_machine_with_a_gpu_well(
    gpu_at_hand: dict[str, str],
) -> None:
    code = "import sys; sys.argv = ['xpurt', 'doctor']; from xpurt.command_line.cli import main; "
    ended = run(code + "sys.exit(main())", **NO_MAPPING, **gpu_at_hand)
    assert "ok    accelerator  CUDA has a GPU here" in ended.stdout
    assert "ok    first op" in ended.stdout
    assert ended.returncode == 0, ended.stdout


def test_a_mapping_in_the_environment_is_asked_for(gpu_at_hand: dict[str, str]) -> None:
    code = """
    import torch, xpurt
    print(xpurt._C.is_active(), torch.device(0), torch.ones(2, device="xpu").sum().item())
    """
    assert output(code, **gpu_at_hand) == "True xpu:0 2.0"


def test_hidden_gpus_are_not_there(gpu_at_hand: dict[str, str]) -> None:
    code = WATCH + "import xpurt; print(xpurt._C.is_active(), asked)"
    hidden = {"CUDA_VISIBLE_DEVICES": "-1"}
    environment = UNTOUCHED | NO_MAPPING | gpu_at_hand | hidden
    assert output(code, **environment) == "True []"


def test_a_driver_without_nvml_may_have_a_gpu() -> None:
    code = """
    import ctypes, sys, torch
    load = ctypes.CDLL
    class CDLL(load):
        def __init__(self, name, *arguments, **options):
            if name == "libcuda.so.1":
                name = None
            elif name == "libnvidia-ml.so.1":
                raise OSError("no NVML")
            super().__init__(name, *arguments, **options)
    ctypes.CDLL = CDLL
    import xpurt
    print(xpurt._C.is_active())
    """
    assert output(code, **UNTOUCHED, **NO_MAPPING) == "False"


def test_warnings_that_are_errors_do_not_keep_xpurt_out() -> None:
    """A driver that is broken makes PyTorch's question to NVML warn."""
    code = """
    import warnings, torch
    def broken():
        warnings.warn("Can't initialize NVML")
        return -1
    torch.cuda._raw_device_count_nvml = broken
    warnings.simplefilter("error")
    import xpurt
    print(xpurt._C.is_active())
    """
    assert output(code, **UNTOUCHED, **NO_MAPPING) == "True"


def test_a_mapping_is_refused_where_cuda_is_in_use() -> None:
    code = """
    import torch
    torch.cuda.is_initialized = lambda: True
    torch.cuda._device_count_nvml = lambda: 1
    import xpurt
    print(xpurt._C.is_active())
    for use in (
        lambda: xpurt.set_xpu_mapping("CPU"),
        lambda: torch.ones(2, device="xpu"),
    ):
        try:
            use()
        except xpurt.MappingError as error:
            print(error)
    print(xpurt._C.is_active(), torch.accelerator.current_accelerator())
    """
    first, *refusals, last = output(code, **UNTOUCHED).splitlines()
    assert (first, last) == ("False", "False cuda")
    assert len(refusals) == 2
    for refusal in refusals:
        assert "CUDA is in use in this process" in refusal
        assert "CUDA_VISIBLE_DEVICES" in refusal


def test_a_mapping_in_the_environment_that_cuda_forbids_is_told_once() -> None:
    code = """
    import torch
    torch.cuda.is_initialized = lambda: True
    torch.cuda._device_count_nvml = lambda: 1
    import xpurt
    print([torch.xpu.is_available() for _ in range(3)])
    """
    ended = run(code, **UNTOUCHED)
    assert ended.stdout == "[False, False, False]\n"
    assert ended.stderr.count("there is no xpu device: an xpu mapping was asked") == 1


def test_importing_asks_cuda_nothing() -> None:
    """Not even without NVML: CUDA's own count would initialize it."""
    code = WATCH + "import xpurt; print(xpurt._C.is_active(), asked)"
    assert output(code, **UNTOUCHED, **NO_MAPPING) == "True []"


def test_a_forked_child_may_ask_for_cuda_and_use_xpu() -> None:
    code = """
    import os, sys, torch, xpurt
    child = os.fork()
    if child == 0:
        x = torch.ones(3, device="xpu", requires_grad=True)
        (2 * x).sum().backward()
        print(torch.cuda._is_in_bad_fork(), torch.cuda.is_available(), x.grad.tolist())
        sys.stdout.flush()
        os._exit(0)
    print(os.waitpid(child, 0)[1])
    """
    assert output(code).splitlines() == ["False False [2.0, 2.0, 2.0]", "0"]


def test_a_timeline_is_refused_where_work_could_be_taken_for_cuda_s() -> None:
    code = """
import xpurt
try:
    with xpurt.timeline(): pass
except NotImplementedError as error: print("could not be told from CUDA's" in str(error))
"""
    assert output(code, XPURT_MAPPING="CPU") == "True"

"""If the system gives no more threads (ulimit -u, a control group), work goes on in the
existing ones, or an error is raised. No process ends, and nothing waits for ever."""

import shutil
import subprocess
from pathlib import Path

import pytest
from own_process import fresh_run

pytestmark = pytest.mark.skipif(
    shutil.which("cc") is None, reason="compiles a library that refuses threads"
)

BEGIN = """
import ctypes, threading, torch, xpurt
library = ctypes.CDLL(None)
refuse = ctypes.c_int.in_dll(library, "xpurt_test_refuse_threads")
refused = ctypes.c_int.in_dll(library, "xpurt_test_refused")
x = torch.ones(1 << 16, device="xpu")
"""

# Each uses threads for the first time while none can be had.
USES = {
    "the main thread waits": """
        with xpurt.kernel_policy("sycl"), xpurt.prefer("gpu"):
            y = x + 1
            refuse.value = 1
            torch.xpu.synchronize()
    """,
    "a stream of two devices waits": """
        with xpurt.kernel_policy("sycl"):
            with xpurt.prefer("gpu"):
                y = x.tanh()
            with xpurt.prefer("cpu"):
                z = x.exp()
            refuse.value = 1
            with xpurt.prefer("gpu"):
                y = y + z
            with xpurt.prefer("cpu"):
                y = (y + 1).sum()
            torch.xpu.synchronize()
    """,
    "a kernel is built on the side": """
        refuse.value = 1
        for _ in range(3):
            y = x.erf().cos().sum()
        torch.xpu.synchronize()
    """,
}


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("threads") / "refuse_threads.so"
    source = Path(__file__).with_name("refuse_threads.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", made, source, "-ldl"], check=True)
    return made


def with_refused(library: Path, code: str, **more: str) -> str:
    ended = fresh_run(
        BEGIN + "\n".join(line.removeprefix("        ") for line in code.splitlines()),
        timeout=100,
        LD_PRELOAD=str(library),
        XPURT_MAPPING="AUTO",
        XPURT_VIRTUAL_GPU="strict",
        XPURT_VIRTUAL_GPU_DELAY_US="20000",
        XPURT_LEARN="0",  # a timed sample waits before threads are refused
        **more,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.mark.one_in(3)
@pytest.mark.parametrize("use", USES)
def test_work_goes_on(use: str, library: Path) -> None:
    code = USES[use] + "\nprint(refused.value > 0, bool(torch.isfinite(y).all()))\n"
    refused, right = with_refused(library, code).split()
    assert right == "True"
    if use != "a kernel is built on the side":  # which AUTO may leave out
        assert refused == "True", "nobody asked for a thread: this shows nothing"


def test_autograd_says_that_it_has_too_few(library: Path) -> None:
    """A device's queue without a thread would keep its first backward for ever."""
    late = """
        import ctypes, torch, xpurt
        torch.ones(2, requires_grad=True).sum().backward()
        refuse = ctypes.c_int.in_dll(ctypes.CDLL(None), "xpurt_test_refuse_threads")
        xpurt.physical_devices()
        refuse.value = 1
        try:
            torch.ones(2, device="xpu")
        except Exception as error:
            print(type(error).__name__, error)
        refuse.value = 0
        x = torch.ones(2, device="xpu", requires_grad=True)
        x.sum().backward()
        print(x.grad.tolist())
    """
    ended = fresh_run(
        late, timeout=100, LD_PRELOAD=str(library), XPURT_MAPPING="CPU",
        XPURT_VIRTUAL_GPU="",
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    *told, gradient = ended.stdout.splitlines()
    assert gradient == "[1.0, 1.0]"
    assert "threads for xpu" in told[0]
    assert "XPURT_MAX_DEVICES" in told[0]

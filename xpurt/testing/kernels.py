"""Checks the kernels that a function launches, on a simulator that sees each access."""

import json
import multiprocessing
import os
import re
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, Literal

from xpurt import launch_recorder, opencl_layer, virtual_gpu

FaultKind = Literal["race", "out of bounds", "uninitialized", "divergence", "other"]

LIBRARY: Final = Path("/usr/lib/oclgrind/liboclgrind-rt.so")

# A discrete GPU with what Oclgrind has: OpenCL 1.2, no sub-groups, no half precision.
# Every op is a kernel, and every tensor an allocation.
DEVICE: Final = {
    "XPURT_VIRTUAL_GPU": "strict",
    "XPURT_VIRTUAL_GPU_FP16": "0",
    "XPURT_VIRTUAL_GPU_LIMITS": (
        "vector_width=1,opencl=1.2,sub_groups=0,work_group=1024,local_memory=32768"
    ),
    "XPURT_MAPPING": "GPU",
    "XPURT_KERNEL_POLICY": "sycl",
    "XPURT_NO_MEMORY_CACHING": "1",
}
SIMULATOR: Final = {
    "OCLGRIND_DATA_RACES": "1",
    "OCLGRIND_UNINITIALIZED": "1",
    "OCLGRIND_MAX_ERRORS": "200",
    "OCLGRIND_MAX_WGSIZE": "1024",
    "OCLGRIND_GLOBAL_MEM_SIZE": str(16 << 30),
}
_KINDS: Final[tuple[tuple[str, FaultKind], ...]] = (
    ("data race", "race"),
    ("ninitialized", "uninitialized"),  # also "Controlflow depends on uninitialized"
    ("Invalid read", "out of bounds"),
    ("Invalid write", "out of bounds"),
    ("Index", "out of bounds"),
    ("divergence", "divergence"),
)
_OTHER: Final[FaultKind] = "other"
_LAUNCHES_OF_A_PROCESS: Final = 100

_environment = threading.Lock()


@dataclass(frozen=True, slots=True)
class KernelFault:
    """What a kernel did wrong, where first.

    kernel: the name of the kernel function.
    message: the simulator's words, with the work-items.
    line: the line of OpenCL C.
    launch: the number of the launch, from 0.
    """

    kind: FaultKind
    kernel: str
    message: str
    line: str
    launch: int


@dataclass(frozen=True, slots=True)
class KernelCheck:
    """faults: one of each kind, kernel and line.
    launches: how many were launched.
    not_run: what the simulator could not run, and how many launches of it.
    differing: kernels whose results in the simulator are others, as by a race.
    rounded: kernels whose floating-point results differ by less than a hundred-thousandth
        of the largest: devices round functions and sums of products in different ways.
    """

    faults: list[KernelFault]
    launches: int
    not_run: dict[str, int]
    differing: dict[str, int]
    rounded: dict[str, int]


def check_kernels(
    function: Callable[..., object],
    *arguments: Any,
    library: str | Path = LIBRARY,
    timeout: float = 600.0,
) -> KernelCheck:
    """Runs ``function(*arguments)`` in a new process, and checks each kernel that it
    launches: those of xpurt and of C++ extensions (``xpurt/opencl_kernel.h``)::

        def forward() -> None:
            my_package.my_op(torch.randn(100, device="xpu"))

        check = xpurt.testing.check_kernels(forward)
        assert not check.faults, check.faults

    Found are races between work-items, accesses outside of a tensor's memory, values
    that are used and that nothing wrote, barriers that not all work-items of a group
    reach, and results that differ from those of the process. The process has a virtual
    GPU (`virtual_gpu`) with OpenCL 1.2 and neither sub-groups nor half precision; each
    launch is recorded there with its memory, and replayed on Oclgrind (Price and
    McIntosh-Smith, IWOCL 2015), a simulator that is some thousand times slower than a
    device: take small tensors.

    function, arguments: of a module that another process can import, as for
        ``multiprocessing``; what they draw or read is up to them.
    library: Oclgrind's ``liboclgrind-rt.so`` (Debian, Ubuntu: ``apt install oclgrind``).
    timeout: seconds for the function, and for each hundred launches in the simulator.

    Raises TypeError if the function is none, FileNotFoundError without Oclgrind, RuntimeError if the function raises or
    ends its process, or launches nothing, TimeoutError if it takes longer.
    """
    if not callable(function):
        raise TypeError(f"check_kernels wants a function; found {function!r}")
    if not Path(library).exists():
        raise FileNotFoundError(
            f"check_kernels wants Oclgrind, a simulator of OpenCL devices; {library} is "
            "not there. Install it (Debian 12, Ubuntu: apt install oclgrind), or name "
            "its liboclgrind-rt.so by library="
        )
    with TemporaryDirectory() as made:
        folder = Path(made)
        _record(function, arguments, folder, timeout)
        check = check_recorded(folder, library, timeout)
    if check.launches == 0:
        raise RuntimeError(
            "check_kernels found no kernel: the function computed nothing on xpu"
        )
    return check


def check_recorded(
    folder: Path, library: str | Path, timeout: float, repeats: int | None = None
) -> KernelCheck:
    """Replays the launches in `folder`; of those that differ in what is in memory alone
    the first `repeats`. The rest is as for `check_kernels`."""
    paths = list(launch_recorder.launches_in(folder))
    if repeats is not None:
        paths = without_repeats(paths, repeats)
    return _summary(paths, _replayed(paths, str(library), folder, timeout))


def without_repeats(paths: Sequence[Path], most: int) -> list[Path]:
    """Of launches that differ in what is in memory alone the first `most`."""
    found: Counter[Hashable] = Counter()
    kept = []
    for path in paths:
        form = launch_recorder.read_launch(path).form
        found[form] += 1
        if found[form] <= most:
            kept.append(path)
    return kept


def recording(folder: Path) -> dict[str, str]:
    """Variables of a process whose launches are recorded into `folder`."""
    layers = (virtual_gpu.library_path(), launch_recorder.library_path())
    return {
        **DEVICE,
        opencl_layer.LAYERS: ":".join(map(str, layers)),
        launch_recorder.LAUNCHES: str(folder),
    }


def _record(
    function: Callable[..., object],
    arguments: Sequence[Any],
    folder: Path,
    timeout: float,
) -> None:
    process = multiprocessing.get_context("spawn").Process(
        target=_call, args=(function, arguments)
    )
    with _environment:
        before = dict(os.environ)
        os.environ.update(recording(folder))
        try:
            process.start()
        finally:
            os.environ.clear()
            os.environ.update(before)
    process.join(timeout)
    if process.is_alive():
        process.kill()
        process.join()
        raise TimeoutError(f"the function of check_kernels ran for {timeout} s")
    if process.exitcode != 0:
        raise RuntimeError(
            f"the function of check_kernels ended its process with {process.exitcode}; "
            "what it raised is on stderr"
        )


def _call(function: Callable[..., object], arguments: Sequence[Any]) -> None:
    import torch

    function(*arguments)
    torch.xpu.synchronize()


def _replayed(
    paths: Sequence[Path], library: str, folder: Path, timeout: float
) -> dict[str, dict[str, Any]]:
    """By the names of launches. After a crash the others go on in another process."""
    results: dict[str, dict[str, Any]] = {}
    for start in range(0, len(paths), _LAUNCHES_OF_A_PROCESS):
        left = list(paths[start : start + _LAUNCHES_OF_A_PROCESS])
        while left:
            begun = ""
            for line in _lines_of_simulator(left, library, folder, timeout):
                if "begins" in line:
                    begun = line["begins"]
                else:
                    results[line["launch"]] = line
            if begun not in results:
                kernel = launch_recorder.read_launch(folder / begun).kernel
                results[begun] = {
                    "refusal": f"the simulator crashed or took too long in {kernel}"
                }
            left = [each for each in left if each.name not in results]
    return results


def _lines_of_simulator(
    paths: Sequence[Path], library: str, folder: Path, timeout: float
) -> Iterator[dict[str, Any]]:
    log = folder / "oclgrind.log"
    log.unlink(missing_ok=True)
    environment: Mapping[str, str] = {
        **os.environ,
        **SIMULATOR,
        "OCLGRIND_LOG": str(log),
    }
    program = str(launch_recorder.SIMULATOR)
    command = [sys.executable, program, library, str(log), *map(str, paths)]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, env=environment, timeout=timeout
        )
        said = done.stdout
        if not said:
            raise RuntimeError(f"Oclgrind does not start: {done.stderr.strip()}")
    except subprocess.TimeoutExpired as late:
        said = (late.stdout or b"").decode()
    return map(json.loads, said.splitlines())


def _summary(
    paths: Sequence[Path], results: Mapping[str, dict[str, Any]]
) -> KernelCheck:
    faults: dict[tuple[str, str, str], KernelFault] = {}
    not_run: Counter[str] = Counter()
    differing: Counter[str] = Counter()
    rounded: Counter[str] = Counter()
    for number, path in enumerate(paths):
        result = results[path.name]
        if result["refusal"]:
            not_run[result["refusal"]] += 1
            continue
        for fault in faults_in(result["said"], number):
            faults.setdefault((fault.kind, fault.kernel, fault.line), fault)
        if result["differs"]:
            counter = rounded if result["differs"] == "rounded" else differing
            counter[result["kernel"]] += 1
    return KernelCheck(list(faults.values()), len(paths), not_run, differing, rounded)


def faults_in(said: str, launch: int) -> Iterator[KernelFault]:
    """Oclgrind's messages: paragraphs whose first line is not indented."""
    for message in re.split(r"\n(?=[^\t\n])", said):
        kernel = re.search(r"\tKernel: (.*)", message)
        if kernel is None:
            continue
        kind = next((kind for text, kind in _KINDS if text in message), _OTHER)
        line = re.search(r"\tAt line .*\n\t *(.*)", message)
        told = line[1].strip() if line else ""
        yield KernelFault(kind, kernel[1].strip(), message.strip(), told, launch)

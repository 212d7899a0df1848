"""What the start of a program takes with xpurt, against stock: fresh processes in turn.

    python tests/bench/bench_import.py [pairs] [program]

The programs: "import" is `import torch` alone, "op" has one op besides, "epoch" trains
the demo's network for an epoch. With xpurt the last two are on xpu, with a warm disk
cache. Prints the medians of wall time and of CPU time (user and system), and the medians
of the pairs' differences. The return code is 1 if a difference is above its limit; CPU
time is the steadier one on a machine that does other things.
"""

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ENTRY_POINT = "[torch.backends]\nxpurt = xpurt_autoload:load\n"
OP = "import torch; print((torch.ones(3, device=DEVICE) + 1).sum().item())"
# As many images as the demo trains on, of their size; those need scikit-learn.
EPOCH = f"""
from runpy import run_path
import torch
torch.manual_seed(7)
network = run_path({str(ROOT / "xpurt/demo/network.py")!r})["DigitNet"]().to(DEVICE)
images = torch.rand(1437, 1, 8, 8).to(DEVICE)
labels = torch.randint(10, (1437,)).to(DEVICE)
optimizer = torch.optim.Adam(network.parameters(), lr=2e-3)
for picked in torch.randperm(1437).to(DEVICE).split(64):
    loss = torch.nn.functional.cross_entropy(network(images[picked]), labels[picked])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
"""


@dataclass(frozen=True, slots=True)
class Program:
    """Python code, with the device as DEVICE. most_ms: the largest difference, of CPU
    time if `of_cpu`, else of the time that passes."""

    name: str
    code: str
    most_ms: float
    of_cpu: bool


PROGRAMS = (
    Program("import", "import torch", 50, of_cpu=True),
    Program("op", OP, 150, of_cpu=False),
    Program("epoch", EPOCH, 500, of_cpu=True),
)


def main(pairs: int, chosen: str) -> int:
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ)
        if not entry_points(group="torch.backends", name="xpurt"):
            environment["PYTHONPATH"] = f"{as_if_installed(Path(folder))}:{ROOT}"
        stock = environment | {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
        ours = environment | {"TORCH_DEVICE_BACKEND_AUTOLOAD": "1"}
        check("torch", stock, loaded=False)
        check("torch, xpurt", ours, loaded=True)
        print(f"{pairs} pairs of processes     wall ms    CPU ms")
        programs = [each for each in PROGRAMS if chosen in ("", each.name)]
        return max([compared(each, stock, ours, pairs) for each in programs])


def compared(
    program: Program, stock: dict[str, str], ours: dict[str, str], pairs: int
) -> int:
    """Prints three lines. Returns 1 if the difference is above the limit."""
    seen: list[tuple[tuple[float, float], tuple[float, float]]] = []
    run(program, "xpu", ours)  # fills the disk cache
    for _ in range(pairs):
        seen.append((run(program, "cpu", stock), run(program, "xpu", ours)))
    columns = [
        [statistics.median(pair[case][clock] for pair in seen) for clock in (0, 1)]
        for case in (0, 1)
    ]
    differences = [
        statistics.median(xpu[clock] - cpu[clock] for cpu, xpu in seen)
        for clock in (0, 1)
    ]
    names = ("torch", "torch, xpurt", "difference")
    for name, (wall, cpu) in zip(names, (*columns, differences), strict=True):
        print(f"{program.name + ': ' + name:<25} {1e3 * wall:>9.0f} {1e3 * cpu:>9.0f}")
    return int(1e3 * differences[program.of_cpu] > program.most_ms)


def as_if_installed(folder: Path) -> Path:
    """A folder with the metadata by which `import torch` finds the package."""
    metadata = folder / "xpurt-0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: xpurt\nVersion: 0\n"
    )
    (metadata / "entry_points.txt").write_text(ENTRY_POINT)
    return folder


def check(name: str, environment: dict[str, str], *, loaded: bool) -> None:
    """Fills the page cache, and sees that the case is what it says."""
    code = "import sys, torch; sys.exit('xpurt.startup.first_use' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], env=environment).returncode
    if found != loaded:
        raise SystemExit(f"the case {name!r} {'has no' if loaded else 'has'} xpurt")


def run(
    program: Program, device: str, environment: dict[str, str]
) -> tuple[float, float]:
    """Wall and CPU seconds of a process that runs the program."""
    code = program.code.replace("DEVICE", repr(device))
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - usage.ru_utime - usage.ru_stime
    return wall, cpu


if __name__ == "__main__":
    arguments = sys.argv[1:]
    counts = [int(each) for each in arguments if each.isdecimal()]
    names = [each for each in arguments if not each.isdecimal()]
    sys.exit(main(*(counts or [9])[:1], *(names or [""])[:1]))

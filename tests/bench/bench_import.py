"""What `import torch` takes with xpurt, against without: fresh processes in turn.

    python tests/bench/bench_import.py [pairs]

Prints the medians of wall time and of CPU time (user and system), and their differences;
CPU time is the steadier one on a machine that does other things. xpurt is to add 0.05 s
at most: it is loaded at the first use of xpu.
"""

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from importlib.metadata import entry_points
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LARGEST_DIFFERENCE_MS = 50
ENTRY_POINT = "[torch.backends]\nxpurt = xpurt_autoload:load\n"


def main(pairs: int) -> int:
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ)
        if not entry_points(group="torch.backends", name="xpurt"):
            environment["PYTHONPATH"] = f"{as_if_installed(Path(folder))}:{ROOT}"
        cases = {
            "torch": environment | {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"},
            "torch, xpurt": environment | {"TORCH_DEVICE_BACKEND_AUTOLOAD": "1"},
        }
        check("torch", cases["torch"], loaded=False)
        check("torch, xpurt", cases["torch, xpurt"], loaded=True)
        times: dict[str, list[tuple[float, float]]] = {name: [] for name in cases}
        for _ in range(pairs):
            for name, case in cases.items():
                times[name].append(import_torch(case))
    print(f"{pairs} pairs of processes     wall ms    CPU ms")
    medians = {}
    for name, seen in times.items():
        medians[name] = [
            statistics.median(column) for column in zip(*seen, strict=True)
        ]
        wall, cpu = (1000 * value for value in medians[name])
        print(f"{name:<25} {wall:>9.0f} {cpu:>9.0f}")
    without, with_xpurt = medians.values()
    differences = [b - a for a, b in zip(without, with_xpurt, strict=True)]
    print(f"{'difference':<25} {differences[0]:>9.0f} {differences[1]:>9.0f}")
    return 0 if differences[1] <= LARGEST_DIFFERENCE_MS else 1


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


def import_torch(environment: dict[str, str]) -> tuple[float, float]:
    """Wall and CPU seconds of a process that does nothing else."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import torch"], env=environment, check=True)
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - usage.ru_utime - usage.ru_stime
    return wall, cpu


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 9))

"""The threads of our own: csrc's Worker by itself, and those of a process that uses
several devices."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from own_process import run

ROOT = Path(__file__).resolve().parents[2]
CHECKS = Path(__file__).with_name("worker_test.cpp")


@pytest.mark.skipif(shutil.which("c++") is None, reason="compiles a program in C++")
def test_a_worker_by_itself(tmp_path: Path) -> None:
    source = next((ROOT / "xpurt" / "csrc").rglob("worker.cpp"))
    program = tmp_path / "worker_test"
    folders = [f"-I{source.parent}", f"-I{ROOT / 'xpurt' / 'csrc'}"]
    # `make sanitize` sets the variable.
    flags = os.environ.get("CXXFLAGS", "").split()
    command = ["c++", "-std=c++20", "-pthread", *flags, *folders, CHECKS, source]
    subprocess.run([*command, "-o", program], check=True)
    ended = subprocess.run([program], capture_output=True, text=True, timeout=100)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ended.stdout.splitlines() == [
        line.split("(")[1].rstrip(");")
        for line in CHECKS.read_text().splitlines()
        if line.startswith("  RUN(")
    ]


# Streams of two devices each, waited for by many threads at once, while kernels are
# built; then the process ends with work pending.
MANY_AT_ONCE = """
import os, threading, torch, xpurt
from xpurt import _C

def work(number, results):
    with torch.xpu.stream(torch.xpu.Stream()):
        x = torch.full((1 << 12,), float(number), device="xpu")
        for i in range(6):
            with xpurt.prefer("gpu" if i % 2 else "cpu"):
                x = x + i
            event = torch.xpu.Event()
            event.record()
            torch.xpu.Stream().wait_event(event)
        if number % 2:
            torch.xpu.current_stream().synchronize()
        else:
            event.synchronize()
        results[number] = x.sum().item()

def begin():
    results = {}
    threads = [threading.Thread(target=work, args=(n, results)) for n in range(12)]
    for thread in threads: thread.start()
    return threads, results

def names():
    found = set()
    for task in os.listdir("/proc/self/task"):
        try:
            found.add(open(f"/proc/self/task/{task}/comm").read().strip())
        except OSError:  # it has ended
            pass
    return sorted(name for name in found if name.startswith("xpurt-"))

with xpurt.kernel_policy("sycl"):
    for _ in range(3):
        threads, results = begin()
        for thread in threads: thread.join()
        for n, total in results.items():
            assert total == (1 << 12) * (n + 15), (n, total)
    torch.xpu.synchronize()
    print(names())
    with xpurt.prefer("gpu"):
        y = torch.ones(1 << 12, device="xpu").tanh()
    z = y + 1  # of the home device, waits for the other one's event
"""


def test_many_waits_builds_and_events_at_once() -> None:
    ended = run(
        MANY_AT_ONCE,
        timeout=100,
        XPURT_MAPPING="AUTO",
        XPURT_VIRTUAL_GPU="strict",
        XPURT_VIRTUAL_GPU_DELAY_US="2000",
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.strip() == "['xpurt-event', 'xpurt-wait']"

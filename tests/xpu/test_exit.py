"""Processes that end while xpu is in use, all clean: a round of them, and 50."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from own_process import run_to_the_end as run

pytestmark = pytest.mark.takes_minutes

PREPARE = """
import atexit, sys, threading, torch
from xpurt import _C
def busy(stream, seconds=0.05):
    _C._submit_sleep(stream.stream_id, stream.device_index, seconds)
stream = torch.xpu.Stream()
"""

# The last action of each process, and its exit code.
ENDS = {
    "work in flight": ("busy(stream)", 0),
    "work in flight on many streams": (
        "kept = [torch.xpu.Stream() for _ in range(8)]\nfor s in kept: busy(s)",
        0,
    ),
    "tensors alive": ("t = torch.ones(1000, device='xpu'); u = t * 2", 0),
    "tensors alive and work in flight": (
        "t = torch.ones(1000, device='xpu')\nwith stream: u = t + 1\nbusy(stream)",
        0,
    ),
    "from a thread": (
        "thread = threading.Thread(target=lambda: busy(torch.xpu.Stream()))\n"
        "thread.start()",
        0,
    ),
    "daemon threads that wait": (
        "import time\n"
        "def wait(what):\n"
        "    own = torch.xpu.Stream()\n"
        "    event = torch.Event('xpu')\n"
        "    while True: busy(own, 0.002); event.record(own); what(own, event)\n"
        "for what in (lambda s, e: s.synchronize(), lambda s, e: e.synchronize(),\n"
        "             lambda s, e: torch.xpu.synchronize()):\n"
        "    threading.Thread(target=wait, args=(what,), daemon=True).start()\n"
        "time.sleep(0.02)",
        0,
    ),
    "after an exception": ("busy(stream); raise KeyError('end')", 1),
    "with an exit code": ("busy(stream); sys.exit(3)", 3),
    "work submitted while exiting": (
        "atexit.register(busy, stream)\n"
        "class Late:\n"
        "    def __del__(self, busy=busy, stream=stream): busy(stream)\n"
        "late = Late()",
        0,
    ),
    "a replaced mapping": (
        "import xpurt\nbusy(stream)\nxpurt.set_xpu_mapping('explicit')\n"
        "busy(torch.xpu.Stream())",
        0,
    ),
    "two devices that wait for each other": (
        "import xpurt\n"
        "cpu = next(d for d in xpurt.physical_devices() if d.kind == 'cpu')\n"
        "if cpu.compute_units % 2 == 0:\n"
        "    xpurt.set_xpu_mapping('explicit', devices='cpu', partition=2)\n"
        "    one, two = torch.xpu.Stream('xpu:0'), torch.xpu.Stream('xpu:1')\n"
        "    busy(one); two.wait_stream(one); busy(two); one.wait_stream(two)",
        0,
    ),
    "after a backward": (
        "x = torch.ones(3, device='xpu', requires_grad=True)\n(2 * x).sum().backward()",
        0,
    ),
    "through os._exit": ("import os; busy(stream); os._exit(4)", 4),
}
MOST = 4  # rounds of 13 ends, and 50 is what was promised


@pytest.mark.one_in(2)
@pytest.mark.parametrize("rounds", [1, pytest.param(MOST, marks=pytest.mark.slow)])
@pytest.mark.parametrize("end", ENDS)
def test_it_ends_cleanly(end: str, rounds: int) -> None:
    code, expected = ENDS[end]
    assert MOST * len(ENDS) >= 50
    with ThreadPoolExecutor(2) as two_at_a_time:
        ended = list(two_at_a_time.map(run, [PREPARE + code] * rounds))
    assert [process.returncode for process in ended] == [expected] * rounds
    for process in ended:
        if expected == 1:
            assert process.stderr.endswith("KeyError: 'end'\n")
        else:
            assert process.stderr == ""


def test_a_failure_that_nobody_waited_for_is_printed() -> None:
    ended = run(PREPARE + "_C._submit_failure(stream.stream_id, 0, 'unheard')")
    assert ended.returncode == 0
    assert "failed on the device: unheard" in ended.stderr

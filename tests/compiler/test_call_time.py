"""The clocks for calls."""

import threading
import time

import pytest
import torch

from xpurt.compiler import call_time
from xpurt.mapping import current_placement


def busy(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def test_waiting_takes_no_processor_time() -> None:
    elapsed_us = call_time.processor_clock()
    busy(0.02)
    time.sleep(0.1)
    assert 20_000 <= elapsed_us() < 90_000


def test_other_threads_of_python_are_not_counted() -> None:
    done = threading.Event()

    def work() -> None:
        while not done.is_set():
            busy(0.001)

    other = threading.Thread(target=work)
    other.start()
    try:
        while not any(call_time._others_ns().values()):
            time.sleep(0.001)
        elapsed_us = call_time.processor_clock()
        begin = time.process_time_ns()
        while time.process_time_ns() - begin < 100_000_000:
            time.sleep(0.001)
        assert elapsed_us() < 50_000
    finally:
        done.set()
        other.join()


def test_workers_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads that are not Python's."""
    monkeypatch.setattr(call_time, "wall_clock", lambda: lambda: float("inf"))
    x = torch.randn(512, 512)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        (x @ x).sum()
        elapsed_us = call_time.processor_clock()
        begin = time.process_time_ns()
        for _ in range(20):
            x @ x
        whole_us = (time.process_time_ns() - begin) / 1e3
        assert elapsed_us() >= whole_us
    finally:
        torch.set_num_threads(before)


def test_threads_at_the_same_time_take_wall_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(call_time, "wall_clock", lambda: lambda: 7.0)
    elapsed_us = call_time.processor_clock()
    busy(0.001)
    assert elapsed_us() == 7.0


@pytest.mark.parametrize(
    ("kind", "clock"),
    [("cpu", call_time.processor_clock), ("gpu", call_time.wall_clock)],
)
def test_other_devices_have_wall_time(
    monkeypatch: pytest.MonkeyPatch, kind: str, clock: call_time.Clock
) -> None:
    class Properties:
        type = kind

    if len(current_placement().ordinals[0]) > 1:
        clock = call_time.wall_clock
    monkeypatch.setattr(torch.xpu, "get_device_properties", lambda index: Properties)
    assert call_time.clock_for(0) is clock

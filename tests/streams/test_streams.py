"""Streams: order, waiting, priorities, the current one of a thread."""

import threading
import time

import pytest
import torch
from spinning import Spin

import xpurt
from xpurt import _C


@pytest.mark.usefixtures("xpu")
def test_a_stream_is_idle_busy_and_idle_again(spin: Spin) -> None:
    stream = torch.xpu.Stream()
    assert stream.query()
    spin(stream)
    assert not stream.query()
    stream.synchronize()
    assert stream.query()


def test_streams_of_torch_and_of_xpu_are_the_same(xpu: torch.device) -> None:
    made = torch.Stream(xpu)
    same = torch.xpu.Stream(
        stream_id=made.stream_id, device_index=0, device_type=made.device_type
    )
    assert isinstance(same, torch.Stream)
    assert same.device == xpu
    assert same.sycl_queue == made.native_handle != 0
    assert hash(same) == hash(made)
    assert same != torch.xpu.Stream()


@pytest.mark.usefixtures("xpu")
def test_the_current_stream() -> None:
    default = torch.xpu.current_stream()
    stream = torch.xpu.Stream()
    with torch.xpu.stream(stream):
        assert torch.xpu.current_stream() == stream
        assert torch.accelerator.current_stream().stream_id == stream.stream_id
        assert _C.current_queue(-1) == stream.sycl_queue
        with torch.xpu.stream(None):
            assert torch.xpu.current_stream() == stream
    assert torch.xpu.current_stream() == default
    with stream:
        assert torch.xpu.current_stream() == stream
    assert torch.xpu.current_stream() == default


@pytest.mark.usefixtures("xpu")
def test_the_current_stream_is_the_thread_s() -> None:
    stream = torch.xpu.Stream()
    seen = []

    def look() -> None:
        seen.append(torch.xpu.current_stream())

    with torch.xpu.stream(stream):
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
    assert seen[0] == torch.xpu.current_stream()
    assert seen[0] != stream


@pytest.mark.usefixtures("xpu")
def test_priorities() -> None:
    lowest, highest = torch.xpu.Stream.priority_range()
    assert lowest > 0 > highest
    assert torch.xpu.Stream().priority == 0
    assert torch.xpu.Stream(priority=highest).priority == highest
    assert torch.xpu.Stream(priority=lowest).priority == lowest
    assert torch.xpu.Stream(priority=-100).priority == highest
    assert torch.xpu.Stream(priority=100).priority == lowest


@pytest.mark.usefixtures("xpu")
def test_waiting_for_another_stream(spin: Spin) -> None:
    first, second = torch.xpu.Stream(), torch.xpu.Stream()
    spin(first)
    second.wait_stream(first)
    assert not second.query()
    second.synchronize()
    assert first.query()


@pytest.mark.usefixtures("xpu")
def test_waiting_for_a_device_is_waiting_for_its_streams(spin: Spin) -> None:
    streams = [torch.xpu.Stream() for _ in range(3)]
    for stream in streams:
        spin(stream, 1_000_000)
    torch.xpu.synchronize()
    assert all(stream.query() for stream in streams)


@pytest.mark.usefixtures("xpu")
def test_others_run_while_one_waits(spin: Spin) -> None:
    stream = torch.xpu.Stream()
    turns = 0
    waiting = True

    def turn() -> None:
        nonlocal turns
        while waiting:
            turns += 1
            time.sleep(0.001)

    thread = threading.Thread(target=turn)
    thread.start()
    spin(stream)
    before = turns
    stream.synchronize()
    during = turns - before
    waiting = False
    thread.join()
    assert during > 0


def failing(stream: torch.Stream, reason: str) -> None:
    _C._submit_failure(stream.stream_id, stream.device_index, reason)


@pytest.mark.usefixtures("xpu")
def test_a_failure_is_raised_once_at_the_next_wait() -> None:
    stream, other = torch.xpu.Stream(), torch.xpu.Stream()
    failing(stream, "the first")
    failing(stream, "the second")
    other.synchronize()
    with pytest.raises(RuntimeError, match="failed on the device: the first"):
        stream.synchronize()
    stream.synchronize()


@pytest.mark.usefixtures("xpu")
def test_a_failure_survives_a_query() -> None:
    stream = torch.xpu.Stream()
    failing(stream, "unheard")
    while not stream.query():
        time.sleep(0.001)
    with pytest.raises(RuntimeError, match="unheard"):
        torch.xpu.synchronize()
    torch.xpu.synchronize()


@pytest.mark.usefixtures("xpu")
def test_a_device_is_waited_for_though_a_stream_failed() -> None:
    failed, slow = torch.xpu.Stream(), torch.xpu.Stream()
    failing(failed, "early")
    _C._submit_sleep(slow.stream_id, 0, 0.05)
    with pytest.raises(RuntimeError, match="early"):
        torch.xpu.synchronize()
    assert slow.query()


def test_a_stream_of_a_replaced_mapping() -> None:
    with xpurt.xpu_mapping("CPU"):
        stream = torch.xpu.Stream()
        event = stream.record_event()
    with xpurt.xpu_mapping("explicit"):
        for use in (stream.synchronize, stream.query, stream.record_event):
            with pytest.raises(RuntimeError, match="mapping that has been replaced"):
                use()
        for use in (event.synchronize, event.query, event.wait):
            with pytest.raises(RuntimeError, match="mapping that has been replaced"):
                use()


@pytest.mark.usefixtures("xpu")
def test_a_device_that_is_not_there() -> None:
    count = torch.xpu.device_count()
    with pytest.raises(RuntimeError, match="is out of range"):
        torch.xpu.current_stream(count)
    with pytest.raises(RuntimeError, match="is out of range"):
        torch.xpu.synchronize(count)


def test_a_stream_sleeps_for_cycles_of_its_device(xpu: torch.device) -> None:
    """`torch.xpu._sleep` of PyTorch 2.14 calls it."""
    torch.xpu.synchronize()
    stream = torch.xpu.current_stream()
    with stream:
        torch._C._xpu_sleep(1_000_000_000)  # a fifth of a second at 5 GHz
        assert not stream.query()
        torch._C._xpu_sleep(0)
    stream.synchronize()
    assert stream.query()
    with pytest.raises(ValueError, match="cycles may not be negative"):
        torch._C._xpu_sleep(-1)

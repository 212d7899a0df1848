"""Events: recording, waiting, time."""

import time

import pytest
import torch
from spinning import Spin

from xpurt import _C


@pytest.fixture(params=["torch.Event", "torch.xpu.Event"])
def make_event(request: pytest.FixtureRequest, xpu: torch.device):
    def make(enable_timing: bool = False) -> torch.Event:
        if request.param == "torch.Event":
            return torch.Event(xpu, enable_timing=enable_timing)
        return torch.xpu.Event(enable_timing=enable_timing)

    return make


def test_an_event_follows_its_stream(make_event, spin: Spin) -> None:
    stream, event = torch.xpu.Stream(), make_event()
    assert event.query()  # nothing to wait for
    assert event.event_id == 0
    spin(stream)
    event.record(stream)
    assert event.event_id != 0
    assert not event.query()
    event.synchronize()
    assert event.query()
    assert stream.query()


def test_a_stream_waits_for_an_event(make_event, spin: Spin) -> None:
    first, second, event = torch.xpu.Stream(), torch.xpu.Stream(), make_event()
    spin(first)
    event.record(first)
    event.wait(second)
    assert not second.query()
    second.synchronize()
    assert event.query()


def test_the_time_between_two_events(make_event) -> None:
    stream = torch.xpu.Stream()
    start, end = make_event(enable_timing=True), make_event(enable_timing=True)
    _C._submit_sleep(stream.stream_id, 0, 0.1)
    start.record(stream)
    _C._submit_sleep(stream.stream_id, 0, 0.2)
    end.record(stream)
    stream.synchronize()
    # Device time: the host recorded both at once.
    assert 190 < start.elapsed_time(end) < 1000
    assert start.elapsed_time(end) == -end.elapsed_time(start)


def test_the_time_of_a_kernel(make_event, spin: Spin) -> None:
    stream = torch.xpu.Stream()
    start, end = make_event(enable_timing=True), make_event(enable_timing=True)
    spin(stream, 1)  # built before the clock starts
    stream.synchronize()
    before = time.perf_counter()
    start.record(stream)
    spin(stream)
    end.record(stream)
    end.synchronize()
    on_the_host = 1000 * (time.perf_counter() - before)
    assert 1 < start.elapsed_time(end) <= on_the_host


def test_the_host_s_time_counts_on_an_idle_stream(make_event) -> None:
    start, end = make_event(enable_timing=True), make_event(enable_timing=True)
    start.record()
    time.sleep(0.05)
    end.record()
    torch.xpu.synchronize()
    assert 45 < start.elapsed_time(end) < 500


def test_events_that_cannot_tell_the_time(make_event, spin: Spin) -> None:
    timed, untimed = make_event(enable_timing=True), make_event()
    with pytest.raises(ValueError, match="recorded"):
        timed.elapsed_time(make_event(enable_timing=True))
    timed.record()
    untimed.record()
    with pytest.raises(ValueError, match="enable_timing=True"):
        timed.elapsed_time(untimed)
    stream, late = torch.xpu.Stream(), make_event(enable_timing=True)
    spin(stream)
    late.record(stream)
    with pytest.raises(RuntimeError, match="completed"):
        timed.elapsed_time(late)


@pytest.mark.usefixtures("xpu")
def test_the_names_of_xpu() -> None:
    event = torch.xpu.Event()
    assert isinstance(event, torch.Event)
    assert repr(event) == "torch.xpu.Event(uninitialized)"
    assert event.sycl_event == 0
    event.record()
    assert event.sycl_event == event.event_id
    stream = torch.xpu.Stream()
    assert stream.record_event(event) is event
    assert isinstance(stream.record_event(), torch.xpu.Event)
    stream.wait_event(event)
    for other in ("soon", torch.Event("xpu", enable_timing=True)):
        with pytest.raises(RuntimeError, match=r"to be a torch\.xpu\.Event object"):
            event.elapsed_time(other)
    for use in (event.record, event.wait):
        with pytest.raises(RuntimeError, match=r"to be a torch\.Stream or torch\.xpu"):
            use(event)

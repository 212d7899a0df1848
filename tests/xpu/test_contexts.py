"""The current device and stream of a thread: contexts, nested, with two devices."""

import threading
from collections.abc import Callable, Iterator

import pytest
import torch

import xpurt


@pytest.fixture(autouse=True)
def two_devices() -> Iterator[None]:
    with xpurt.xpu_mapping("explicit"):
        assert torch.xpu.device_count() >= 2
        yield
        torch.xpu.set_device(0)


def here() -> tuple[int, int]:
    """The current device, and the stream of it."""
    return torch.xpu.current_device(), torch.xpu.current_stream().stream_id


def test_devices_nest() -> None:
    with torch.xpu.device(1):
        assert torch.xpu.current_device() == 1
        with torch.xpu.device("xpu:0"):
            assert torch.xpu.current_device() == 0
            with torch.accelerator.device_index(1):
                assert torch.xpu.current_device() == 1
            assert torch.xpu.current_device() == 0
        for same in (-1, None, torch.device("xpu")):
            with torch.xpu.device(same):
                assert torch.xpu.current_device() == 1
        with torch.accelerator.device_index(None):
            assert torch.xpu.current_device() == 1
    assert torch.xpu.current_device() == 0


def test_a_device_is_left_when_an_error_passes() -> None:
    with pytest.raises(ZeroDivisionError), torch.xpu.device(1):
        _ = 1 // 0
    assert torch.xpu.current_device() == 0


def test_the_device_of_a_tensor() -> None:
    with torch.xpu.device_of(torch.empty(1, device="xpu:1")):
        assert torch.xpu.current_device() == 1
        with torch.xpu.device_of(torch.empty(1)):
            assert torch.xpu.current_device() == 1
    assert torch.xpu.current_device() == 0


def test_new_tensors_go_to_the_current_device() -> None:
    with torch.xpu.device(1):
        assert torch.empty(1, device="xpu").device.index == 1
        assert torch.ones(1).xpu().device.index == 1
        assert torch.xpu.Stream().device.index == 1
    assert torch.empty(1, device="xpu").device.index == 0


@pytest.mark.parametrize(
    "enter",
    [
        lambda: torch.accelerator.device_index(9).__enter__(),
        lambda: torch.xpu.device(9).__enter__(),
        lambda: torch.accelerator.set_device_index(9),
    ],
)
def test_a_device_that_is_not_there(enter: Callable[[], None]) -> None:
    with pytest.raises(RuntimeError, match="xpu:9 is out of range"):
        enter()
    assert torch.xpu.current_device() == 0


def test_streams_bring_their_device() -> None:
    first, second = torch.xpu.Stream(0), torch.xpu.Stream(1)
    before = here()
    with torch.xpu.stream(second):
        assert here() == (1, second.stream_id)
        with torch.xpu.stream(first):
            assert here() == (0, first.stream_id)
            assert torch.xpu.current_stream(1) == second
        assert here() == (1, second.stream_id)
        with torch.xpu.stream(None):  # type: ignore[arg-type]
            assert here() == (1, second.stream_id)
    assert here() == before
    assert torch.xpu.current_stream(1) != second


def test_one_stream_entered_twice() -> None:
    stream = torch.xpu.Stream(1)
    before = here()
    with stream, torch.xpu.stream(stream):
        assert here() == (1, stream.stream_id)
        with stream:
            assert here() == (1, stream.stream_id)
        assert here() == (1, stream.stream_id)
    assert here() == before
    generic = torch.Stream("xpu:1")
    with generic:
        assert here() == (1, generic.stream_id)
    assert here() == before


def test_setting_a_stream_sets_its_device() -> None:
    first, stream = torch.xpu.current_stream(), torch.xpu.Stream(1)
    torch.xpu.set_stream(stream)
    assert here() == (1, stream.stream_id)
    torch.xpu.set_stream(first)
    assert here() == (0, first.stream_id)
    assert torch.xpu.current_stream(1) == stream
    torch.xpu.set_stream(None)  # type: ignore[arg-type]
    assert here() == (0, first.stream_id)


def test_another_thread_begins_anew() -> None:
    seen: list[tuple[int, int]] = []
    default = here()
    with torch.xpu.Stream(1):
        thread = threading.Thread(target=lambda: seen.append(here()))
        thread.start()
        thread.join()
    assert seen == [default]


def test_streams_that_stand_for_the_same() -> None:
    stream = torch.xpu.Stream(1)
    same = torch.xpu.Stream(
        stream_id=stream.stream_id,
        device_index=stream.device_index,
        device_type=stream.device_type,
    )
    assert same == stream
    assert hash(same) == hash(stream)
    assert same.native_handle == stream.sycl_queue != 0
    assert len({stream, same, torch.xpu.Stream(1)}) == 2
    assert stream != torch.Stream("xpu:1")
    assert stream._as_parameter_.value == stream.sycl_queue


def test_an_event_stays_on_its_device() -> None:
    event = torch.xpu.Event()
    event.record(torch.xpu.Stream(1))
    assert event.device == torch.device("xpu:1")
    with pytest.raises(RuntimeError, match="does not match"):
        event.record(torch.xpu.Stream(0))
    # Others may wait for it.
    event.wait(torch.xpu.Stream(0))
    torch.xpu.Stream(0).wait_event(event)


def test_what_each_device_can_do() -> None:
    count = torch.xpu.device_count()
    names = [torch.xpu.get_device_name(index) for index in range(count)]
    assert len(set(names)) > 1
    for index, name in enumerate(names):
        for form in (f"xpu:{index}", torch.device("xpu", index)):
            assert torch.xpu.get_device_name(form) == name
        with torch.xpu.device(index):
            for form in (None, -1, "xpu"):
                assert torch.xpu.get_device_name(form) == name
        for other in range(count):
            assert torch.xpu.can_device_access_peer(
                index, other
            ) is torch.xpu.can_device_access_peer(other, index)
    with pytest.raises(ValueError, match="Expected a xpu device"):
        torch.xpu.get_device_name("cpu")

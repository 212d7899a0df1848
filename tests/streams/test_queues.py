"""Streams to and from dpctl."""

import gc

import dpctl
import pytest
import torch
from spinning import Spin

from xpurt import streams


def test_a_stream_s_queue(xpu: torch.device, spin: Spin) -> None:
    stream = torch.xpu.Stream(xpu)
    queue = streams.sycl_queue(stream)
    assert isinstance(queue, dpctl.SyclQueue)
    assert queue.is_in_order
    spin(stream)  # submits to the queue
    assert not stream.query()
    queue.wait()
    assert stream.query()


def test_the_current_stream_s_queue(xpu: torch.device) -> None:
    with torch.xpu.stream(torch.xpu.Stream(xpu)) as _:
        queue = streams.sycl_queue()
        assert queue == streams.sycl_queue(torch.xpu.current_stream())


def test_there_and_back_is_the_same_queue(xpu: torch.device) -> None:
    queue = streams.sycl_queue(torch.xpu.Stream(xpu))
    again = streams.sycl_queue(streams.stream_from_queue(queue))
    assert again == queue


def test_a_queue_made_by_dpctl(xpu: torch.device, spin: Spin) -> None:
    home = streams.sycl_queue(torch.xpu.current_stream(xpu))
    queue = dpctl.SyclQueue(home.sycl_context, home.sycl_device, property="in_order")
    stream = streams.stream_from_queue(queue)
    assert isinstance(stream, torch.xpu.Stream)
    assert stream == streams.stream_from_queue(queue)
    assert streams.sycl_queue(stream) == queue
    del queue
    gc.collect()
    with torch.xpu.stream(stream):
        assert torch.xpu.current_stream() == stream
        spin(stream)
        assert not stream.query()
    torch.xpu.synchronize()
    assert stream.query()


def test_the_address_of_a_queue(xpu: torch.device) -> None:
    home = streams.sycl_queue(torch.xpu.current_stream(xpu))
    stream = torch.xpu.get_stream_from_external(home.addressof_ref(), xpu)
    assert streams.sycl_queue(stream) == home
    with pytest.raises(ValueError, match="null"):
        torch.xpu.get_stream_from_external(0)


def test_an_out_of_order_queue(xpu: torch.device) -> None:
    home = streams.sycl_queue(torch.xpu.current_stream(xpu))
    queue = dpctl.SyclQueue(home.sycl_context, home.sycl_device)
    with pytest.raises(ValueError, match='property="in_order"'):
        streams.stream_from_queue(queue)


@pytest.mark.mappings("GPU")
def test_a_queue_of_another_device(xpu: torch.device) -> None:
    behind = {
        streams.sycl_queue(torch.xpu.current_stream(i)).sycl_device
        for i in range(torch.xpu.device_count())
    }
    others = [d for d in dpctl.get_devices() if d not in behind]
    if not others:
        pytest.skip("every device is behind an ordinal")
    queue = dpctl.SyclQueue(others[0], property="in_order")
    with pytest.raises(ValueError, match="holds the memory of no xpu device"):
        streams.stream_from_queue(queue)


def test_a_stream_of_the_cpu_has_no_queue() -> None:
    with pytest.raises(ValueError, match="on cpu"):
        streams.sycl_queue(torch.Stream("cpu"))

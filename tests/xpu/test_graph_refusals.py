"""The ops that XPU graphs refuse, by name, and the state of the capture afterwards."""

from collections.abc import Callable

import pytest
import torch
from captures import captured, ramp

import xpurt


@pytest.mark.parametrize(
    ("name", "use"),
    [
        ("_local_scalar_dense", lambda x: x.sum().item()),
        ("copy_ from xpu:0 to cpu", lambda x: x.cpu()),
        ("copy_ from cpu to xpu:0", lambda x: torch.ones(3).to(x.device)),
        ("copy_ from cpu to xpu:0", lambda x: x.copy_(torch.ones(1000))),
        (
            "copy_ from cpu to xpu:0",
            lambda x: x.copy_(torch.ones(1000).pin_memory()),
        ),
        ("aten::_linalg_eigh", lambda x: torch.linalg.eigh(x[:9].view(3, 3))),
        ("waiting for", lambda x: torch.xpu.synchronize()),
        ("waiting for", lambda x: torch.xpu.current_stream().synchronize()),
        ("waiting for", lambda x: torch.xpu.current_stream().query()),
        ("enable_timing", lambda x: torch.xpu.Event(enable_timing=True).record()),
        ("emptying the cache", lambda x: torch.xpu.empty_cache()),
    ],
)
def test_what_a_capture_refuses(
    cpu: torch.device, name: str, use: Callable[[torch.Tensor], object]
) -> None:
    x = ramp(cpu)
    default = torch.xpu.current_stream()
    invalidated = torch.xpu.XPUGraph()

    def work() -> None:
        with torch.xpu.graph(invalidated):
            x.add_(1)
            use(x)

    with pytest.raises(RuntimeError, match=f"{name}.* cannot be captured"):
        work()
    assert torch.xpu.current_stream() == default
    assert not torch.xpu.is_current_stream_capturing()
    with pytest.raises(RuntimeError, match=f"capture was invalidated: .*{name}"):
        invalidated.replay()
    torch.xpu.synchronize()
    assert x.sum().item() == 499_500, "nothing of it was run"
    # The same object is good for another capture.
    invalidated.reset()
    with torch.xpu.graph(invalidated):
        x.add_(1)
    invalidated.replay()
    assert x.sum().item() == 500_500


@pytest.mark.parametrize("write", [lambda t: t.add_(1), lambda t: t.copy_(t + 1)])
def test_the_first_write_to_a_lazy_copy(
    cpu: torch.device, write: Callable[[torch.Tensor], torch.Tensor]
) -> None:
    x = ramp(cpu)
    clone = torch._lazy_clone(x)
    with pytest.raises(RuntimeError, match="into a copy-on-write tensor"):
        captured(lambda: write(clone))
    write(clone)
    assert clone.sum().item() == 500_500
    assert x.sum().item() == 499_500


def test_an_error_that_is_caught_inside_invalidates_the_graph(
    cpu: torch.device,
) -> None:
    x = ramp(cpu)
    graph = torch.xpu.XPUGraph()
    with torch.xpu.graph(graph):
        x.add_(1)
        with pytest.raises(RuntimeError, match="cannot be captured"):
            x.sum().item()
        x.add_(1)
    with pytest.raises(RuntimeError, match="invalidated: aten::_local_scalar_dense"):
        graph.replay()


def test_an_error_of_the_program_does_not(cpu: torch.device) -> None:
    x = ramp(cpu)
    graph = torch.xpu.XPUGraph()

    def work() -> None:
        with torch.xpu.graph(graph):
            x.add_(1)
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        work()
    graph.replay()
    assert x.sum().item() == 500_500


def test_events_of_a_capture(cpu: torch.device) -> None:
    x = ramp(cpu)
    event = torch.xpu.Event()
    graph = torch.xpu.XPUGraph()
    with torch.xpu.graph(graph):
        x.add_(1)
        event.record()
        event.wait()
        x.mul_(2)
    for use in (event.query, event.synchronize, event.wait):
        with pytest.raises(RuntimeError, match="marks nothing that runs"):
            use()
    event.record()
    event.synchronize()
    graph.replay()
    assert torch.equal(x.cpu(), (torch.arange(1000.0) + 1) * 2)


def test_a_graph_waits_for_no_other_stream(cpu: torch.device) -> None:
    x = ramp(cpu)
    other, event = torch.xpu.Stream(), torch.xpu.Event()

    def work() -> torch.Tensor:
        xpurt._C._submit_sleep(other.stream_id, 0, 0.2)
        event.record(other)
        x.add_(1)
        event.wait()
        return x

    with pytest.raises(RuntimeError, match="event of another stream"):
        captured(work)
    torch.xpu.synchronize()


def test_a_stream_that_waits_for_a_capture_gets_no_work(cpu: torch.device) -> None:
    x, other = ramp(cpu), torch.xpu.Stream()

    def work(more: bool) -> torch.Tensor:
        x.add_(1)
        other.wait_stream(torch.xpu.current_stream())
        if more:
            with torch.xpu.stream(other):
                x.mul_(2)
        return x

    graph, _ = captured(lambda: work(False))
    graph.replay()
    assert x.sum().item() == 500_500
    with pytest.raises(RuntimeError, match="waits for the captured stream"):
        captured(lambda: work(True))
    with torch.xpu.stream(other):
        x.mul_(2)
    other.synchronize()
    assert x.sum().item() == 1_001_000


def test_one_capture_at_a_time(cpu: torch.device) -> None:
    x = ramp(cpu)
    first, second = torch.xpu.XPUGraph(), torch.xpu.XPUGraph()
    first.capture_begin()
    try:
        with pytest.raises(RuntimeError, match="one at a time"):
            second.capture_begin()
        x.add_(1)
        with pytest.raises(RuntimeError, match="before capture_end"):
            first.replay()
    finally:
        first.capture_end()
    with pytest.raises(RuntimeError, match="holds a capture already"):
        first.capture_begin()
    with pytest.raises(RuntimeError, match="without a capture_begin"):
        second.capture_end()
    first.replay()
    assert x.sum().item() == 500_500


@pytest.mark.parametrize(
    ("mapping", "reason"),
    [
        ("AUTO", "2 devices under the mapping.*run the work eagerly"),
        ("GPU", "ext_oneapi_limited_graph.*Run the work eagerly"),
    ],
)
def test_devices_that_record_nothing(mapping: str, reason: str) -> None:
    with xpurt.xpu_mapping(mapping):
        for use in (
            torch.xpu.XPUGraph,
            lambda: torch.xpu.make_graphed_callables(abs, ()),
            torch.accelerator.Graph,
        ):
            with pytest.raises(NotImplementedError, match=reason):
                use()
        assert torch.xpu.is_current_stream_capturing() is False

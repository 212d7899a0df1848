"""Copies between the device and pinned memory inside captures."""

import gc
from collections.abc import Callable

import pytest
import torch
from captures import captured, ramp


def no_change(x: torch.Tensor) -> torch.Tensor:
    return x


FORMS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "as it is": no_change,
    "another dtype": lambda x: x.to(torch.float64),
    "transposed": lambda x: x.t().contiguous().t(),
    "part of a row": lambda x: x[1],
}


@pytest.mark.parametrize("form", FORMS.values(), ids=list(FORMS))
def test_each_replay_copies_what_is_there_then(
    cpu: torch.device, form: Callable[[torch.Tensor], torch.Tensor]
) -> None:
    x = torch.zeros(10, 20, device=cpu)
    host = torch.zeros_like(form(torch.zeros(10, 20))).pin_memory()
    back = torch.zeros(10, 20, dtype=torch.float64).pin_memory()

    def work() -> torch.Tensor:
        x.copy_(host, non_blocking=True)
        x.mul_(2)
        back.copy_(x, non_blocking=True)
        return x

    graph, _ = captured(work)
    assert back.count_nonzero() == 0
    for value in (3, 4):
        host.copy_(form(torch.arange(200.0).view(10, 20)) + value)
        graph.replay()
        torch.xpu.synchronize()
        expected = (host.to(torch.float32) * 2).expand(10, 20)
        assert torch.equal(x.cpu(), expected)
        assert torch.equal(back, expected.to(torch.float64))


def test_the_graph_keeps_pinned_memory(cpu: torch.device) -> None:
    x, hosts = ramp(cpu), [torch.full((1000,), 6.0).pin_memory()]
    address = hosts[0].data_ptr()
    graph, _ = captured(lambda: x.copy_(hosts[0], non_blocking=True))
    hosts.clear()
    gc.collect()
    other = torch.zeros(1000).pin_memory()
    assert other.data_ptr() != address
    graph.replay()
    assert x.sum().item() == 6000
    del other
    graph.reset()
    torch.xpu.synchronize()
    assert torch.zeros(1000).pin_memory().numel() == 1000

"""`share()` of a module: it goes to xpu, or back, without a second copy."""

import gc
from collections.abc import Iterator

import pytest
import torch
from torch import nn

import xpurt
from xpurt import _C


@pytest.fixture(autouse=True)
def cpu_mapping() -> Iterator[None]:
    with xpurt.xpu_mapping("CPU"):
        yield
        gc.collect()


def model() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.Linear(16, 4))


def addresses(module: nn.Module) -> list[int]:
    return [t.data_ptr() for t in (*module.parameters(), *module.buffers())]


def test_it_goes_there_with_the_same_bytes() -> None:
    here = model()
    before = addresses(here)
    allocated = torch.xpu.memory_allocated()
    there = xpurt.share(here)
    assert there is here
    assert {p.device.type for p in there.parameters()} == {"xpu"}
    assert {b.device.type for b in there.buffers()} == {"xpu"}
    assert addresses(there) == before
    assert torch.xpu.memory_allocated() == allocated
    assert addresses(xpurt.share(there)) == before
    assert {p.device.type for p in there.parameters()} == {"cpu"}


def test_it_trains_as_a_copy_does_and_what_was_kept_follows() -> None:
    x, y = torch.randn(32, 8), torch.randn(32, 4)
    copied = model().to("xpu")
    shared = model()
    kept = dict(shared.state_dict())
    xpurt.share(shared)
    for each in (copied, shared):
        optimizer = torch.optim.SGD(each.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            (each(x.to("xpu")) - y.to("xpu")).square().mean().backward()
            optimizer.step()
    torch.xpu.synchronize()
    for name, value in copied.state_dict().items():
        assert torch.equal(kept[name], value.cpu()), name


def test_gradients_go_too() -> None:
    here = model()
    here(torch.randn(3, 8)).sum().backward()
    expected = here[0].weight.grad.clone()
    there = xpurt.share(here)
    assert there[0].weight.grad.device.type == "xpu"
    assert torch.equal(there[0].weight.grad.cpu(), expected)


def test_tied_parameters_stay_tied() -> None:
    tied = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4)])
    tied[1].weight = tied[0].weight
    xpurt.share(tied)
    assert tied[1].weight is tied[0].weight
    assert tied[0].weight.device.type == "xpu"


def test_what_is_there_already_stays() -> None:
    mixed = nn.ModuleList([nn.Linear(4, 4).to("xpu"), nn.Linear(4, 4)])
    before = addresses(mixed)
    xpurt.share(mixed)
    assert {p.device.type for p in mixed.parameters()} == {"xpu"}
    assert addresses(mixed) == before


def test_a_module_that_cannot_go_is_left_alone() -> None:
    odd = nn.Linear(4, 4)
    odd.register_buffer("table", torch.eye(3).to_sparse())
    with pytest.raises(TypeError, match="dense"):
        xpurt.share(odd)
    assert odd.weight.device.type == "cpu"


def test_bytes_go_with_the_module() -> None:
    before = _C.live_memory()
    there = xpurt.share(model())
    assert _C.live_memory()[0] > before[0]
    del there
    gc.collect()
    assert _C.live_memory() == before

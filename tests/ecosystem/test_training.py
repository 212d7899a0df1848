"""Training as PyTorch offers it: mixed precision, recomputation, optimizers, loaders,
several devices."""

import copy
import gc
from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset

import xpurt


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(8, 16), nn.LayerNorm(16), nn.GELU(), nn.Linear(16, 4)
    )


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_autocast(dtype: torch.dtype, xpu: torch.device) -> None:
    def run(device: torch.device | str) -> list[torch.Tensor]:
        model = network().to(device)
        torch.manual_seed(1)
        x = torch.randn(32, 8).to(device)
        with torch.autocast(torch.device(device).type, dtype=dtype):
            hidden = model[0](x)
            assert hidden.dtype == dtype
            if device == xpu:  # as on every GPU, where range matters
                assert torch.softmax(hidden, 1).dtype == torch.float32
            loss = F.cross_entropy(model(x), torch.zeros(32).long().to(device))
        loss.backward()
        return [loss.detach().cpu(), *(p.grad.cpu() for p in model.parameters())]

    for found, expected in zip(run(xpu), run("cpu"), strict=True):
        torch.testing.assert_close(found, expected, rtol=0.05, atol=0.01)


def test_scaled_gradients(xpu: torch.device) -> None:
    model = network().to(xpu)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    scaler = torch.amp.GradScaler("xpu", init_scale=2.0**10)
    x = torch.randn(16, 8, device=xpu)
    before = [p.detach().clone() for p in model.parameters()]
    for bad in (False, True):
        optimizer.zero_grad()
        with torch.autocast("xpu", dtype=torch.float16):
            loss = model(x).float().square().mean()
        scaler.scale(loss * (float("inf") if bad else 1.0)).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        after = [p.detach().clone() for p in model.parameters()]
        changed = any(not torch.equal(a, b) for a, b in zip(after, before, strict=True))
        assert changed == (not bad)  # a step with infinite gradients is left out
        before = after
    assert scaler.get_scale() == 2.0**9


@pytest.mark.parametrize("reentrant", [False, True])
def test_recomputation_drops_the_same(reentrant: bool, xpu: torch.device) -> None:
    model = nn.Sequential(nn.Linear(8, 64), nn.Dropout(0.5), nn.Linear(64, 8)).to(xpu)
    results = []
    for recompute in (False, True):
        x = torch.ones(4, 8, device=xpu, requires_grad=True)
        torch.xpu.manual_seed(3)
        if recompute:
            y = checkpoint(model, x, use_reentrant=reentrant)
        else:
            y = model(x)
        y.sum().backward()
        assert x.grad is not None
        results.append((y.detach().cpu(), x.grad.cpu()))
    for found, expected in zip(*results, strict=True):
        assert torch.equal(found, expected)


OPTIMIZERS: dict[str, Any] = {
    "SGD": (torch.optim.SGD, {"momentum": 0.9}),
    "Adam": (torch.optim.Adam, {}),
    "AdamW": (torch.optim.AdamW, {"amsgrad": True}),
}


@pytest.mark.parametrize("how", ["plain", "foreach", "fused", "capturable"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers(name: str, how: str, xpu: torch.device) -> None:
    kind, options = OPTIMIZERS[name]
    if name == "SGD" and how == "capturable":
        pytest.skip("SGD has no such form")
    chosen = {**options} if how == "plain" else {**options, how: True}
    results = []
    for device, form in ((xpu, chosen), (torch.device("cpu"), options)):
        model = network().to(device)
        optimizer = kind(model.parameters(), lr=0.01, **form)
        x = torch.linspace(-1, 1, 64).reshape(8, 8).to(device)
        for _ in range(3):
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()
            optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))
        results.append([p.detach().cpu() for p in model.parameters()])
    for found, expected in zip(*results, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def test_batches_from_workers_in_pinned_memory(xpu: torch.device) -> None:
    data = TensorDataset(torch.arange(32.0).reshape(16, 2))
    total = torch.zeros((), device=xpu)
    loader = DataLoader(data, batch_size=4, num_workers=2, pin_memory=True)
    for (batch,) in loader:
        assert batch.is_pinned()
        total += batch.to(xpu, non_blocking=True).sum()
    assert total.item() == sum(range(32))


def test_sync_batch_norm_of_one_process(xpu: torch.device) -> None:
    results = []
    for kind in (nn.BatchNorm1d, nn.SyncBatchNorm):
        layer = kind(3).to(xpu)
        x = torch.linspace(-1, 2, 60, device=xpu).reshape(4, 3, 5).requires_grad_()
        y = layer(x)
        y.square().sum().backward()
        results.append((y.detach(), x.grad, layer.weight.grad, layer.running_var))
    torch.testing.assert_close(results[1], results[0])


@pytest.fixture
def two_parts() -> Iterator[None]:
    """The CPU device in two halves: xpu:0 and xpu:1."""
    gc.collect()
    with xpurt.xpu_mapping("explicit", devices="cpu", partition=2):
        yield
        gc.collect()


def test_data_parallel(two_parts: None) -> None:
    model = network()
    x = torch.randn(6, 8)
    expected = model(x)
    expected.sum().backward()
    expected_grads = [p.grad for p in model.parameters()]
    model.zero_grad()
    spread = nn.DataParallel(model.to("xpu:0"), device_ids=[0, 1])
    for batch in (x, x.to("xpu:0")):
        spread.zero_grad()
        found = spread(batch)
        assert found.device == torch.device("xpu:0")
        torch.testing.assert_close(found.cpu(), expected)
        found.sum().backward()
        for p, grad in zip(model.parameters(), expected_grads, strict=True):
            torch.testing.assert_close(p.grad.cpu(), grad)


def test_moves_between_devices(two_parts: None) -> None:
    from torch.nn.parallel import comm

    x = torch.arange(10.0, device="xpu:0")
    first, second = comm.scatter(x, [0, 1], chunk_sizes=[3, 7])
    assert (first.tolist(), str(second.device)) == ([0, 1, 2], "xpu:1")
    assert torch.equal(comm.gather([first, second], destination=1).cpu(), x.cpu())
    assert [str(t.device) for t in comm.broadcast(x, [0, 1])] == ["xpu:0", "xpu:1"]
    with pytest.raises(RuntimeError, match=r"begins with its own; found \[1, 0\]"):
        comm.broadcast(x, [1, 0])
    with pytest.raises(RuntimeError, match="one size for each of 2 devices; found 3"):
        comm.scatter(x, [0, 1], chunk_sizes=[1, 2, 7])

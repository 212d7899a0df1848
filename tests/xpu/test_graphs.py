"""XPU graphs: captures on the CPU device, and their replays."""

import copy
import gc
from pathlib import Path

import pytest
import torch
from captures import captured, ramp

import xpurt

MIB = 1 << 20


@pytest.mark.parametrize("size", [1, 1000, 100_000])
def test_replays_compute_with_what_the_inputs_hold_then(
    cpu: torch.device, size: int
) -> None:
    x = ramp(cpu, size)
    graph, y = captured(lambda: torch.exp(x * 0.001) + x.sum())
    for start in (0.0, 5.0):
        x.copy_(torch.arange(size) + start)
        graph.replay()
        expected = x.cpu()
        torch.testing.assert_close(
            y.cpu(), torch.exp(expected * 0.001) + expected.sum()
        )


def test_nothing_runs_during_the_capture(cpu: torch.device) -> None:
    x = ramp(cpu)
    graph, _ = captured(lambda: x.add_(1))
    assert torch.equal(x.cpu(), torch.arange(1000.0))
    for _ in range(3):
        graph.replay()
    assert torch.equal(x.cpu(), torch.arange(1000.0) + 3)


def test_products_copies_fills_and_steps(cpu: torch.device) -> None:
    a, b = ramp(cpu, 48 * 32).view(48, 32), ramp(cpu, 32 * 40).view(32, 40) / 1280
    bias = ramp(cpu, 40)

    def work() -> torch.Tensor:
        product = torch.addmm(bias, a, b)
        copy = torch.zeros_like(product)
        copy.copy_(product)
        return torch.cat([copy, torch.softmax(product, 1)])

    graph, result = captured(work)
    for factor in (1, 2):
        a.copy_(torch.arange(48.0 * 32).view(48, 32) * factor)
        graph.replay()
        product = torch.addmm(bias.cpu(), a.cpu(), b.cpu())
        expected = torch.cat([product, torch.softmax(product, 1)])
        torch.testing.assert_close(result.cpu(), expected, rtol=1e-4, atol=1e-3)


def test_who_is_capturing(cpu: torch.device) -> None:
    x = ramp(cpu)
    graph = torch.xpu.XPUGraph()
    assert not torch.xpu.is_current_stream_capturing()
    with torch.xpu.graph(graph):
        x.mul_(2)
        assert torch.xpu.is_current_stream_capturing()
        assert torch.accelerator.current_stream().is_capturing()
        with torch.xpu.stream(torch.xpu.Stream()):
            assert not torch.xpu.is_current_stream_capturing()
    assert not torch.xpu.is_current_stream_capturing()


def test_graphs_share_a_pool(cpu: torch.device) -> None:
    x = ramp(cpu)
    first, y = captured(lambda: x + 1)
    second, z = captured(lambda: y * 2, pool=first.pool())
    assert second.pool() == first.pool()
    handle = torch.xpu.graph_pool_handle()
    third, w = captured(lambda: z - 3, pool=handle)
    assert third.pool() == handle != first.pool()
    addresses = [t.data_ptr() for t in (y, z, w)]
    for start in (0.0, 100.0):
        x.copy_(torch.arange(1000) + start)
        for graph in (first, second, third):
            graph.replay()
        assert torch.equal(w.cpu(), (torch.arange(1000) + start + 1) * 2 - 3)
    assert [t.data_ptr() for t in (y, z, w)] == addresses
    pools = {tuple(s["segment_pool_id"]) for s in torch.xpu.memory_snapshot()}
    assert {first.pool(), handle} <= pools


def test_a_replay_is_work_of_its_stream(cpu: torch.device) -> None:
    x = ramp(cpu, 200_000)
    graph, y = captured(lambda: torch.sin(x) + 1)
    stream, done = torch.xpu.Stream(), torch.xpu.Event()
    torch.xpu.synchronize()
    with torch.xpu.stream(stream):
        xpurt._C._submit_sleep(stream.stream_id, 0, 0.2)
        graph.replay()
        done.record()
    assert not stream.query()
    assert not done.query()
    done.wait()
    z = y * 2
    expected = (torch.sin(torch.arange(200_000.0)) + 1) * 2
    torch.testing.assert_close(z.cpu(), expected)
    assert done.query()
    stream.synchronize()
    assert stream.query()


def test_memory_is_given_back(cpu: torch.device) -> None:
    x = torch.zeros(3 * MIB, dtype=torch.float32, device=cpu)
    gc.collect()
    torch.xpu.empty_cache()
    before = torch.xpu.memory_reserved()
    graph, y = captured(lambda: (x + 1) * 2)
    held = torch.xpu.memory_reserved()
    assert held > before
    address = y.data_ptr()
    del y
    torch.xpu.empty_cache()
    assert torch.xpu.memory_reserved() == held, "the graph still writes there"
    fresh = torch.zeros(3 * MIB, dtype=torch.float32, device=cpu)
    assert fresh.data_ptr() != address
    graph.replay()
    assert fresh.sum().item() == 0
    del fresh
    graph.reset()
    torch.xpu.empty_cache()
    assert torch.xpu.memory_reserved() == before
    with pytest.raises(RuntimeError, match="before capture_end"):
        graph.replay()


def test_a_pool_of_the_user_s_own_goes_before_its_graph(cpu: torch.device) -> None:
    x, pool = ramp(cpu), torch.xpu.MemPool()
    graph, y = captured(lambda: x + 1, pool=pool.id)
    address = y.data_ptr()
    del pool, y
    gc.collect()
    torch.xpu.empty_cache()
    fresh = torch.zeros(1000, device=cpu)
    assert fresh.data_ptr() != address
    graph.replay()
    assert fresh.sum().item() == 0


def test_a_result_outlives_its_graph(cpu: torch.device) -> None:
    x = ramp(cpu)
    graph, y = captured(lambda: x + 1)
    graph.replay()
    del graph
    gc.collect()
    torch.xpu.empty_cache()
    assert torch.equal(y.cpu(), torch.arange(1000.0) + 1)


def test_a_graph_that_goes_during_its_capture(cpu: torch.device) -> None:
    x = ramp(cpu)
    graph = torch.xpu.XPUGraph()
    graph.capture_begin()
    x.add_(1)
    graph.reset()
    assert not torch.xpu.is_current_stream_capturing()
    assert x.sum().item() == 499_500


def test_an_index_out_of_range_is_told_after_the_replay(cpu: torch.device) -> None:
    x, index = ramp(cpu), torch.zeros(5000, dtype=torch.int64).to(cpu)
    graph, _ = captured(lambda: x.index_select(0, index))
    graph.replay()
    torch.xpu.synchronize()
    index.fill_(5000)
    torch.xpu.synchronize()
    stream = torch.xpu.Stream()
    with torch.xpu.stream(stream):
        graph.replay()
    with pytest.raises(IndexError, match="out of range"):
        stream.synchronize()


def test_keep_graph_and_dumps(cpu: torch.device, tmp_path: Path) -> None:
    x = ramp(cpu)
    graph = torch.xpu.XPUGraph(keep_graph=True)
    with torch.xpu.graph(graph):
        x.add_(1)
    assert graph.raw_xpu_graph() != 0
    with pytest.raises(RuntimeError, match="before instantiate"):
        graph.raw_xpu_graph_exec()
    graph.instantiate()
    assert graph.raw_xpu_graph_exec() != 0
    graph.debug_dump(str(tmp_path / "graph.dot"))
    assert "digraph" in (tmp_path / "graph.dot").read_text()
    with pytest.raises(RuntimeError, match=r"ends with \.dot"):
        graph.debug_dump(str(tmp_path / "graph.txt"))
    graph.replay()
    assert x.sum().item() == 500_500
    plain, _ = captured(lambda: x.add_(1))
    with pytest.raises(RuntimeError, match="keep_graph=True"):
        plain.raw_xpu_graph()


def test_an_empty_graph_is_told(cpu: torch.device) -> None:
    with pytest.warns(UserWarning, match="The XPU Graph is empty"):
        graph, _ = captured(lambda: torch.ones(3))
    graph.replay()


def test_a_graph_of_a_replaced_mapping() -> None:
    with xpurt.xpu_mapping("CPU"):
        graph, result = captured(lambda: torch.ones(3, device="xpu"))
        graph.replay()
        del result
        gc.collect()
    with (
        xpurt.xpu_mapping("explicit"),
        pytest.raises(RuntimeError, match="mapping that has been replaced"),
    ):
        graph.replay()


def test_graphs_of_torch_accelerator(cpu: torch.device) -> None:
    x = ramp(cpu)
    graph = torch.accelerator.Graph()
    with torch.xpu.Stream(), graph:
        x.add_(1)
    graph.replay()
    graph.replay()
    assert x.sum().item() == 501_500


def test_a_training_step(cpu: torch.device) -> None:
    torch.manual_seed(0)
    reference = torch.nn.Sequential(
        torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4)
    )
    model = torch.nn.Sequential(
        torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4)
    )
    model.load_state_dict(reference.state_dict())
    model.to(cpu)
    graphed = torch.xpu.make_graphed_callables(model, (torch.randn(6, 8).to(cpu),))
    optimizers = [
        torch.optim.SGD(each.parameters(), lr=0.1) for each in (reference, graphed)
    ]
    for _ in range(3):
        inputs, target = torch.randn(6, 8), torch.randn(6, 4)
        losses = []
        for module, optimizer, device in zip(
            (reference, graphed), optimizers, ("cpu", cpu), strict=True
        ):
            optimizer.zero_grad()
            output = module(inputs.to(device))
            loss = torch.nn.functional.mse_loss(output, target.to(device))
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        torch.testing.assert_close(losses[0], losses[1], rtol=1e-4, atol=1e-5)
    for a, b in zip(reference.parameters(), graphed.parameters(), strict=True):
        torch.testing.assert_close(a, b.cpu(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("optimizer", "options"), [("SGD", {}), ("Adam", {"capturable": True})]
)
def test_a_whole_training_step(
    cpu: torch.device, optimizer: str, options: dict[str, bool]
) -> None:
    torch.manual_seed(0)
    start = torch.nn.Linear(8, 4)
    inputs = torch.randn(6, 8)
    losses: dict[str, list[float]] = {}
    for device in ("cpu", "xpu"):
        model = copy.deepcopy(start).to(device)
        optim = getattr(torch.optim, optimizer)(
            model.parameters(), lr=0.1, **(options if device == "xpu" else {})
        )
        x = inputs.to(device)

        def step(
            model: torch.nn.Module = model,
            optim: torch.optim.Optimizer = optim,
            x: torch.Tensor = x,
        ) -> torch.Tensor:
            optim.zero_grad(set_to_none=True)
            loss = (torch.relu(model(x)) ** 2).mean()
            loss.backward()
            optim.step()
            return loss.detach()

        if device == "cpu":
            losses[device] = [step().item() for _ in range(6)]
            continue
        with torch.xpu.stream(torch.xpu.Stream()):
            losses[device] = [step().item() for _ in range(3)]
        graph, loss = captured(step)
        for _ in range(3):
            graph.replay()
            losses[device].append(loss.item())
    torch.testing.assert_close(losses["cpu"], losses["xpu"], rtol=1e-4, atol=1e-6)

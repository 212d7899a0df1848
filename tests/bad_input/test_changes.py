"""Changes of the mapping that are refused, and those that come at a bad moment."""

import threading
import time
from collections.abc import Iterator

import pytest
import torch

import xpurt
from xpurt import _C
from xpurt.errors import MappingError


@pytest.fixture(autouse=True)
def under_cpu() -> Iterator[None]:
    with xpurt.xpu_mapping("CPU"):
        yield


def refused(found: str = "1 storage holds") -> None:
    with pytest.raises(MappingError, match=found):
        xpurt.set_xpu_mapping("AUTO:CPU")
    assert xpurt.get_xpu_mapping() == "CPU"
    assert torch.ones(2, device="xpu").add(1).tolist() == [2, 2]


def allowed() -> None:
    with xpurt.xpu_mapping("AUTO:CPU"):
        assert torch.ones(2, device="xpu").tolist() == [1, 1]


def test_a_model_that_goes_on_after_the_refusal() -> None:
    model = torch.nn.Linear(3, 1).to("xpu")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9)
    data = torch.ones(4, 3, device="xpu")
    stream, event = torch.xpu.Stream(), torch.xpu.Event()
    generator = torch.Generator("xpu").manual_seed(5)
    losses = []
    for step in range(3):
        loss = model(data).square().sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if step == 1:
            refused("storages hold")
    assert losses[0] > losses[1] > losses[2]
    # Nothing of the old mapping was touched.
    event.record(stream)
    event.synchronize()
    assert generator.initial_seed() == 5
    del model, optimizer, data, loss
    allowed()


def test_tensors_in_a_reference_cycle_are_garbage() -> None:
    class Node:
        pass

    node = Node()
    node.itself = node  # type: ignore[attr-defined]
    node.tensor = torch.ones(3, device="xpu", requires_grad=True)  # type: ignore[attr-defined]
    del node
    allowed()


def test_a_tensor_in_another_thread() -> None:
    made, drop, dropped = (threading.Event() for _ in range(3))

    def hold() -> None:
        tensor = torch.ones(2, device="xpu")
        made.set()
        drop.wait(30)
        assert tensor.sum().item() == 2
        del tensor
        dropped.set()

    thread = threading.Thread(target=hold)
    thread.start()
    assert made.wait(30)
    refused()
    drop.set()
    assert dropped.wait(30)
    thread.join(30)
    allowed()


def test_shared_memory_counts_on_either_side() -> None:
    ours = torch.ones(4)
    lent = xpurt.share(ours)
    refused("1 storage holds 16 bytes")
    del lent
    allowed()
    kept = xpurt.share(torch.ones(4, device="xpu"))  # a CPU tensor of xpu's bytes
    refused("1 storage holds 16 bytes")
    assert kept.tolist() == [1, 1, 1, 1]
    del kept
    allowed()


def test_a_failed_share_counts_nothing() -> None:
    before = _C.live_memory()
    with pytest.raises(MappingError):
        xpurt.share(torch.ones(4), "xpu:3")
    assert _C.live_memory() == before


def test_a_tensor_that_was_not_seen_is_seen_at_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tensor = torch.ones(2, device="xpu")
    monkeypatch.setattr(_C, "live_memory", lambda: (0, 0))
    epoch = _C.placement_epoch()
    refused()
    assert _C.uninstall_placement() == (1, 8)
    assert _C.placement_epoch() == epoch
    del tensor


def test_tensors_made_while_the_mapping_changes() -> None:
    failures: list[str] = []
    made = 0
    end = time.monotonic() + 1.5

    def make() -> None:
        nonlocal made
        while time.monotonic() < end:
            tensor = torch.empty(1000, device="xpu")
            # While it lives the mapping stays the one that it was made under.
            epoch = _C.placement_epoch()
            tensor.fill_(3)
            if tensor.sum().item() != 3000 or _C.placement_epoch() != epoch:
                failures.append("another mapping under a tensor")
            del tensor
            made += 1

    def guarded() -> None:
        try:
            make()
        except Exception as error:
            failures.append(repr(error))

    threads = [threading.Thread(target=guarded) for _ in range(2)]
    for thread in threads:
        thread.start()
    changes = 0
    refusals: list[str] = []
    while time.monotonic() < end:
        for name in ("AUTO:CPU", "CPU"):
            try:
                xpurt.set_xpu_mapping(name)
                changes += 1
            except MappingError as error:
                refusals.append(str(error))
    for thread in threads:
        thread.join(30)
    assert not failures
    assert made > 0
    assert changes > 0
    assert all("alive" in refusal for refusal in refusals)
    allowed()


def test_streams_events_and_generators_of_the_old_mapping() -> None:
    stream, generator = torch.xpu.Stream(), torch.Generator("xpu").manual_seed(1)
    event = torch.Event("xpu")
    event.record(stream)
    timed = torch.xpu.Event(enable_timing=True)
    timed.record(stream)
    with xpurt.xpu_mapping("AUTO:CPU"):
        for use in (
            lambda: torch.xpu.set_stream(stream),
            lambda: torch.xpu.current_stream().wait_stream(stream),
            lambda: torch.ones(1, device="xpu").record_stream(stream),
            lambda: torch.xpu.current_stream().wait_event(event),
            event.synchronize,
            event.query,
            lambda: timed.elapsed_time(timed),
            generator.get_state,
            generator.seed,
            lambda: generator.manual_seed(2),
            lambda: torch.randn(2, device="xpu", generator=generator),
        ):
            with pytest.raises(RuntimeError, match="mapping that has been replaced"):
                use()
        # An event can be used again: recording makes it one of this mapping.
        event.record()
        event.synchronize()
        assert torch.ones(2, device="xpu").tolist() == [1, 1]

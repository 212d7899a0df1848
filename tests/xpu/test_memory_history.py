"""torch.xpu.memory._record_memory_history: each allocation, its code and its time."""

import json
import pickle
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from own_process import output
from torch.cuda import _memory_viz

import xpurt
from xpurt import _C

MIB = 1 << 20


@pytest.fixture(autouse=True)
def nothing_recorded(xpu: torch.device) -> Iterator[None]:
    torch.xpu.init()  # PyTorch's layer shows no memory before
    torch.xpu.empty_cache()
    yield
    torch.xpu.memory._record_memory_history(None)


def entries(device: int = 0) -> list[dict[str, Any]]:
    traces: list[list[dict[str, Any]]] = torch.xpu.memory._snapshot()["device_traces"]
    return traces[device]


def actions(device: int = 0) -> list[str]:
    return [entry["action"] for entry in entries(device)]


def block_of(tensor: torch.Tensor) -> dict[str, Any]:
    (block,) = [
        block
        for segment in torch.xpu.memory_snapshot()
        for block in segment["blocks"]
        if block["address"] == tensor.data_ptr()
    ]
    return dict(block)


def allocate_here(xpu: torch.device) -> torch.Tensor:
    return torch.empty(5000, device=xpu)


def free_here(held: list[torch.Tensor]) -> None:
    held.clear()


def test_nothing_is_recorded_unasked(xpu: torch.device) -> None:
    tensor = allocate_here(xpu)
    assert block_of(tensor)["frames"] == []
    assert entries() == []


def test_the_life_of_a_tensor(xpu: torch.device) -> None:
    began_us = time.time() * 1e6
    torch.xpu.memory._record_memory_history()
    tensor = allocate_here(xpu)
    address = tensor.data_ptr()
    del tensor
    torch.xpu.empty_cache()
    found = entries()
    assert [entry["action"] for entry in found] == [
        "segment_alloc",
        "alloc",
        "free_requested",
        "free_completed",
        "segment_free",
    ]
    assert [entry["addr"] for entry in found[1:4]] == [address] * 3
    assert [entry["size"] for entry in found] == [2 * MIB, *[20000] * 3, 2 * MIB]
    times = [entry["time_us"] for entry in found]
    assert times == sorted(times)
    assert began_us - 1e6 < times[0] <= times[-1] < time.time() * 1e6 + 1e6
    # A snapshot is an event, too; the next snapshot contains it.
    assert actions()[-1] == "snapshot"


@pytest.mark.mappings("CPU")
def test_the_first_history_of_a_process_has_times() -> None:
    code = """
    import time, torch
    begin = time.time()
    torch.xpu.memory._record_memory_history()
    tensor = torch.ones(3, device="xpu")
    (trace,) = torch.xpu.memory._snapshot()["device_traces"]
    passed = [entry["time_us"] / 1e6 - begin for entry in trace]
    print(len(trace) > 0, all(-1 < seconds < 60 for seconds in passed))
    """
    assert output(code) == "True True"


def test_python_s_stack_is_kept(xpu: torch.device) -> None:
    torch.xpu.memory._record_memory_history(stacks="python")
    tensor = allocate_here(xpu)
    frames = block_of(tensor)["frames"]
    assert [frame["name"] for frame in frames[:2]] == [
        "allocate_here",
        "test_python_s_stack_is_kept",
    ]
    assert frames[0]["filename"] == __file__
    assert frames[0]["line"] > 1
    (segment,) = torch.xpu.memory_snapshot()
    assert segment["frames"][0]["name"] == "allocate_here"


def test_the_stack_of_cpp_is_kept(xpu: torch.device) -> None:
    torch.xpu.memory._record_memory_history("state", stacks="all")
    tensor = allocate_here(xpu)
    names = {frame["name"] for frame in block_of(tensor)["frames"]}
    assert any("at::_ops::empty" in name for name in names)
    assert "allocate_here" in names


@pytest.mark.parametrize("context", [None, "state", "alloc", "all"])
def test_whose_stacks_are_kept(xpu: torch.device, context: Any) -> None:
    torch.xpu.memory._record_memory_history(context=context, stacks="python")
    held = [allocate_here(xpu)]
    assert bool(block_of(held[0])["frames"]) is (context is not None)
    free_here(held)
    text = json.dumps(entries())
    assert ("allocate_here" in text) is (context in ("alloc", "all"))
    assert ("free_here" in text) is (context == "all")
    # Freed memory is not in the state.
    whole = json.dumps(torch.xpu.memory._snapshot())
    assert ("allocate_here" in whole) is (context in ("alloc", "all"))


def test_the_state_alone_keeps_no_history(xpu: torch.device) -> None:
    torch.xpu.memory._record_memory_history("state", stacks="python")
    tensor = allocate_here(xpu)
    del tensor
    assert actions() == ["free_completed"]


def test_the_oldest_entries_go(xpu: torch.device) -> None:
    torch.xpu.memory._record_memory_history(max_entries=4, stacks="python")
    for size in range(1, 6):
        torch.empty(size, dtype=torch.uint8, device=xpu)
    assert [entry["size"] for entry in entries()] == [4, 5, 5, 5]


def test_what_is_skipped(xpu: torch.device) -> None:
    torch.xpu.memory._record_memory_history(
        skip_actions=["free_requested", "segment_alloc"], stacks="python"
    )
    del_me = allocate_here(xpu)
    del del_me
    assert actions() == ["alloc", "free_completed"]
    with pytest.raises(RuntimeError, match="Unknown TraceEntry action"):
        torch.xpu.memory._record_memory_history(skip_actions=["nap"])


def test_clearing_and_ending(xpu: torch.device) -> None:
    torch.xpu.memory._record_memory_history(stacks="python")
    kept = allocate_here(xpu)
    torch.xpu.memory._record_memory_history(stacks="python")
    assert len(entries()) == 2, "starting again keeps what there is"
    torch.xpu.memory._record_memory_history(stacks="python", clear_history=True)
    assert entries() == []
    torch.xpu.memory._record_memory_history(None)
    del kept
    assert entries() == []


def test_out_of_memory_is_an_entry(xpu: torch.device) -> None:
    torch.xpu.memory._record_memory_history(stacks="python")
    with pytest.raises(torch.OutOfMemoryError):
        torch.empty(1 << 50, dtype=torch.uint8, device=xpu)
    (entry,) = entries()
    assert entry["action"] == "oom"
    assert entry["size"] == 1 << 50
    assert 0 < entry["device_free"] <= torch.xpu.mem_get_info()[1]
    assert "addr" not in entry
    assert entry["frames"][0]["name"] == "test_out_of_memory_is_an_entry"


@pytest.mark.parametrize(
    "wrong", [{"enabled": "some"}, {"context": "some"}, {"stacks": "some"}]
)
def test_words_it_does_not_know(wrong: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="expected"):
        torch.xpu.memory._record_memory_history(**wrong)  # type: ignore[arg-type]


def test_a_dump_for_the_viewer(xpu: torch.device, tmp_path: Path) -> None:
    torch.xpu.memory._record_memory_history()
    tensor = allocate_here(xpu)
    file = tmp_path / "snapshot.pickle"
    torch.xpu.memory._dump_snapshot(str(file))
    loaded = pickle.loads(file.read_bytes())
    assert set(loaded) == {"segments", "device_traces", "allocator_settings"}
    # The output of PyTorch's own tools for it.
    assert "2.0MiB" in _memory_viz.segsum(loaded)
    assert "19.5KiB" in _memory_viz.trace(loaded)
    assert "<html>" in _memory_viz.trace_plot(loaded)
    del tensor


@pytest.mark.mappings("CPU")
def test_the_settings_of_the_allocator() -> None:
    code = """
    import torch, xpurt
    tensor = torch.empty(2 << 20, dtype=torch.uint8, device="xpu")
    found = torch.xpu.memory._snapshot()
    print(torch.xpu.memory_reserved() >> 20, found["allocator_settings"])
    """
    default = {"PYTORCH_ALLOC_CONF": "", "expandable_segments": False}
    assert output(code) == f"20 {default}"
    setting = "large_segment_size_mb:30"
    default["PYTORCH_ALLOC_CONF"] = setting
    assert output(code, PYTORCH_ALLOC_CONF=setting) == f"30 {default}"


def test_the_accelerator_s_snapshot(xpu: torch.device) -> None:
    tensor = allocate_here(xpu)
    found = torch.accelerator.memory._snapshot()
    blocks = [block for segment in found["segments"] for block in segment["blocks"]]
    assert tensor.data_ptr() in {block["address"] for block in blocks}


def test_two_devices() -> None:
    with xpurt.xpu_mapping("explicit"):
        torch.xpu.memory._record_memory_history(stacks="python")
        torch.empty(10, device="xpu:1")
        assert entries(0) == []
        assert "alloc" in actions(1)


def test_a_block_that_waits_for_a_stream(xpu: torch.device) -> None:
    """It is freed for good when the other stream's work is done."""
    torch.xpu.memory._record_memory_history(stacks="python", context="alloc")
    stream = torch.xpu.Stream()
    tensor = allocate_here(xpu)
    stream.wait_stream(torch.xpu.current_stream())
    _C._submit_sleep(stream.stream_id, stream.device_index, 0.3)
    tensor.record_stream(stream)
    address = tensor.data_ptr()
    del tensor
    (state,) = [
        block["state"]
        for segment in torch.xpu.memory_snapshot()
        for block in segment["blocks"]
        if block["address"] == address
    ]
    assert state == "active_pending_free"
    assert actions()[-2:] == ["free_requested", "snapshot"]
    stream.synchronize()
    torch.xpu.empty_cache()
    assert actions()[-2:] == ["free_completed", "segment_free"]

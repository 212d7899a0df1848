"""The timeline: from a trace that is made up, and of work on two devices."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

import xpurt
from auto.choices import Choices
from xpurt.mapping.auto.timeline import Timeline, pieces_of


def event(name: str, tid: int, ts: float, dur: float, **args: Any) -> dict[str, Any]:
    args = {"physical device": tid, "stream": 0, **args}
    return {"name": name, "pid": 9, "tid": tid, "ts": ts, "dur": dur, "args": args}


def named(tid: int, name: str) -> dict[str, Any]:
    return {"name": "thread_name", "pid": 9, "tid": tid, "args": {"name": name}}


TRACE = {
    "traceEvents": [
        named(0, "a GPU, stream 0"),
        named(1, "a CPU, stream 0"),
        {"name": "aten::add", "pid": 1, "tid": 1, "ts": 90, "dur": 5, "args": {}},
        event("add", 0, 120, 30),
        event("memcpy", 0, 100, 20, bytes=64),
        event("mul", 1, 110, 10),
    ]
}


def test_pieces_are_the_work_of_queues_in_order_of_time() -> None:
    pieces = pieces_of(TRACE)
    assert [(p.name, p.start_us, p.end_us) for p in pieces] == [
        ("memcpy", 0, 20),
        ("mul", 10, 20),
        ("add", 20, 50),
    ]
    assert [p.is_copy for p in pieces] == [True, False, False]
    shown = Timeline(pieces, TRACE)
    assert [q.name for q in shown.queues] == ["a GPU", "a CPU"]
    assert [shown.busy_us(q) for q in shown.queues] == [50, 10]


def test_without_work_there_is_nothing() -> None:
    assert pieces_of({}) == ()
    assert Timeline().queues == ()


@pytest.mark.parametrize("suffix", ["json", "png", "svg"])
def test_it_is_saved_by_its_suffix(tmp_path: Path, suffix: str) -> None:
    pytest.importorskip("matplotlib")
    path = tmp_path / f"shown.{suffix}"
    Timeline(pieces_of(TRACE), TRACE).save(path)
    assert path.stat().st_size > 100
    if suffix == "json":
        assert json.loads(path.read_text()) == TRACE


@pytest.mark.skipif(torch.cuda._is_compiled(), reason="no timelines beside CUDA's")
def test_a_row_per_physical_queue(choices: Choices, tmp_path: Path) -> None:
    x = torch.ones(1 << 14, device="xpu")
    x.tanh()
    with xpurt.timeline(tmp_path / "found.json") as found:
        choices.gpu()
        y = x.tanh()
        choices.cpu()
        y.tanh()
    kinds = {d.name: d.kind for d in xpurt.physical_devices()}
    assert sorted(kinds[q.name] for q in found.queues) == ["cpu", "gpu"]
    kernels = [p for p in found.pieces if not p.is_copy]
    assert [kinds[p.queue.name] for p in kernels] == ["gpu", "cpu"]
    copied = {kinds[p.queue.name]: p.copied_bytes for p in found.pieces if p.is_copy}
    assert copied == {"gpu": 4 << 14}
    assert "traceEvents" in json.loads((tmp_path / "found.json").read_text())

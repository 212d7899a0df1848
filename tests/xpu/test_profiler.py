"""torch.profiler: what the devices did, when, and for which op.

Kineto's state is the process's, so each test has a process of its own.
"""

from pathlib import Path

import pytest
import torch
from profiles_taken import output, profiled

pytestmark = pytest.mark.skipif(
    torch.cuda._is_compiled(), reason="profiles show no work of xpu beside CUDA's"
)


def test_a_kernel_has_a_name_and_lies_within_its_profile() -> None:
    found = profiled(
        """
import time
x.exp()
with profile(activities=BOTH) as p:
    before = time.time_ns()
    x.exp()
    torch.xpu.synchronize()
    after = time.time_ns()
kernel, = on_device(p)
begin = p.profiler.kineto_results.trace_start_ns()
tell(name=kernel.name, us=kernel.time_range.elapsed_us(), index=kernel.device_index,
     start=begin + kernel.time_range.start * 1000 - before,
     end=after - begin - kernel.time_range.end * 1000)
"""
    )
    assert "exp" in found["name"]
    assert found["us"] > 0
    assert found["index"] == 0
    # The two clocks are compared through a command, which takes some microseconds.
    assert found["start"] > -50_000
    assert found["end"] > -50_000


def test_an_op_has_the_time_of_its_kernels() -> None:
    found = profiled(
        """
with profile(activities=BOTH) as p:
    for _ in range(3):
        x.exp()
    x.sum()
rows = {row.key: row for row in p.key_averages()}
table = p.key_averages().table(sort_by="self_device_time_total")
kernels = [e for e in on_device(p) if "exp" in e.name]
tell(count=len(kernels), kernels=sum(e.time_range.elapsed_us() for e in kernels),
     exp=rows["aten::exp"].self_device_time_total,
     total=sum(e.time_range.elapsed_us() for e in on_device(p)),
     all=sum(row.self_device_time_total for row in rows.values()
             if row.device_type == DeviceType.CPU),
     column="Self XPU" in table and "Self XPU time total" in table)
"""
    )
    assert found["count"] == 3
    assert found["exp"] > 0
    assert found["exp"] == pytest.approx(found["kernels"])
    assert found["all"] == pytest.approx(found["total"])
    assert found["column"]


@pytest.mark.rest
def test_work_of_one_stream_is_in_order_and_does_not_overlap() -> None:
    found = profiled(
        """
with profile(activities=BOTH) as p:
    for _ in range(20):
        x = x.exp().log()
works = [e.time_range for e in on_device(p)]
tell(count=len(works), ordered=all(
    one.start <= one.end <= other.start + 1 for one, other in zip(works, works[1:])))
"""
    )
    assert found == {"count": 40, "ordered": True}


@pytest.mark.rest
def test_copies_say_how_many_bytes() -> None:
    found = profiled(
        """
with profile(activities=BOTH) as p:
    torch.ones(1000).to("xpu").cpu()
copies = [e for e in trace(p) if e.get("cat") == "gpu_memcpy"]
tell(bytes=[e["args"]["bytes"] for e in copies], names=[e["name"] for e in copies])
""",
        XPURT_MAPPING="GPU",
        XPURT_VIRTUAL_GPU="strict",
    )
    assert found == {"bytes": [4000, 4000], "names": ["memcpy", "memcpy"]}


def test_matrix_products_of_onednn_are_there() -> None:
    found = profiled(
        """
m = torch.rand(64, 64, device="xpu")
with profile(activities=BOTH) as p:
    m @ m
tell(names=[e.name for e in on_device(p)],
     us={r.key: r.device_time_total for r in p.key_averages()}["aten::mm"])
"""
    )
    assert found["names"] == ["onednn_matmul"]
    assert found["us"] > 0


def test_the_trace_has_a_named_row_for_each_queue() -> None:
    found = profiled(
        """
from xpurt import mapping
kinds = [d.kind for d in mapping.current_placement().ordinals[0]]
def only(kind):
    _C.set_device_costs(0, [(0 if k == kind else 1e9, 1e9, 1e9, 0, 1e9) for k in kinds])
with profile(activities=BOTH) as p:
    for kind in ("cpu", "gpu"):
        only(kind)
        x.exp()
    with torch.xpu.stream(torch.xpu.Stream()):
        only("cpu")
        x.log()
events = trace(p)
tell(kernels=[(e["name"], e["pid"], e["tid"]) for e in events
              if e.get("cat") == "kernel"],
     rows={e["tid"]: e["args"]["name"] for e in events
           if e["name"] == "thread_name" and e["pid"] == 0},
     process=[e["args"]["name"] for e in events
              if e["name"] == "process_name" and e["pid"] == 0],
     devices=[d.name for d in mapping.current_placement().ordinals[0]])
""",
        XPURT_MAPPING="AUTO",
        XPURT_VIRTUAL_GPU="strict",
    )
    rows = {
        tid: name
        for _, _, tid in found["kernels"]
        for name in [found["rows"][str(tid)]]
    }
    assert len(found["kernels"]) == len(rows) == 3
    assert {pid for _, pid, _ in found["kernels"]} == {0}
    assert found["process"] == ["xpu:0"]
    assert len(set(rows.values())) == 3
    for device in found["devices"]:
        assert any(device in name for name in rows.values())


def test_work_that_is_still_queued_at_the_end_is_waited_for() -> None:
    found = profiled(
        """
from torch.autograd.profiler import profile as plain
stream = torch.xpu.current_stream()
torch.xpu.synchronize = lambda *device: None  # the profile's own wait
with profile(activities=BOTH) as p:
    _C._submit_sleep(stream.stream_id, stream.device_index, 0.2)
    x.exp()
    queued = not stream.query()
tell(queued=queued, us=[e.time_range.elapsed_us() for e in on_device(p)])
"""
    )
    assert found["queued"]
    (us,) = found["us"]
    assert 0 < us < 150_000


@pytest.mark.rest
def test_two_profiles_one_after_the_other() -> None:
    found = profiled(
        """
counts = []
for repeat in (1, 2):
    with profile(activities=BOTH) as p:
        for _ in range(repeat):
            x.exp()
    counts.append(len(on_device(p)))
    x.exp()  # between them
tell(counts=counts)
"""
    )
    assert found == {"counts": [1, 2]}


@pytest.mark.rest
def test_a_profile_of_the_cpu_records_no_device() -> None:
    found = profiled(
        """
with profile(activities=[ProfilerActivity.CPU]) as p:
    x.exp()
cpu = len(on_device(p))
tell(cpu=cpu, recorded=[e for e in trace(p) if e.get("cat") == "kernel"])
"""
    )
    assert found == {"cpu": 0, "recorded": []}


def test_the_trace_of_a_program_on_the_cpu_has_no_span_of_xpu(tmp_path: Path) -> None:
    """The activities are those of `profile` by default, with which xpu takes part."""
    names = output(
        f"""
import json, torch
from torch.profiler import profile
with profile() as p:
    torch.ones(3).exp()
p.export_chrome_trace({str(tmp_path / "trace.json")!r})
with open({str(tmp_path / "trace.json")!r}) as file:
    events = json.load(file)["traceEvents"]
print(*[each["name"] for each in events if each["pid"] in ("Spans", "Traces", "")],
      sep=", ")
"""
    )
    assert names.split(", ") == [
        "PyTorch Profiler (0)",
        "process_sort_index",
        "Iteration Start: PyTorch Profiler",
        "Record Window End",
    ]


def test_results_are_right_while_queues_change() -> None:
    found = profiled(
        """
y, expected = torch.zeros(1000, device="xpu"), 0.0
stream = torch.xpu.current_stream()
right = []
for i in range(6):
    _C._submit_sleep(stream.stream_id, stream.device_index, 0.02)
    y.add_(i)  # queued before the profile, on another queue
    with profile(activities=BOTH):
        y.mul_(2)
    y.add_(1)
    expected = (expected + i) * 2 + 1
    right.append(y.cpu().unique().tolist() == [expected])
tell(right=right)
"""
    )
    assert found["right"] == [True] * 6


@pytest.mark.rest
def test_work_on_a_queue_that_others_know_is_timed_too() -> None:
    found = profiled(
        """
torch.xpu.current_stream().sycl_queue  # handed out
with profile(activities=BOTH) as p:
    x.exp()
    x.log()
tell(us=[e.time_range.elapsed_us() for e in on_device(p)],
     op={r.key: r.device_time_total for r in p.key_averages()}["aten::exp"])
"""
    )
    assert len(found["us"]) == 2
    assert min(found["us"]) > 0
    assert found["op"] > 0


@pytest.mark.rest
def test_a_profile_begun_before_the_import() -> None:
    code = """
import torch
from torch.profiler import ProfilerActivity, profile
with profile(activities=[ProfilerActivity.CPU]) as p:
    torch.rand(10).exp()
import xpurt
xpurt.set_kernel_policy("sycl")
x = torch.rand(1 << 18).to("xpu")
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.XPU]) as p:
    x.exp()
row = {r.key: r for r in p.key_averages()}["aten::exp"]
print(row.self_device_time_total > 0)
"""
    assert output(code) == "True"


def test_backward_ops_have_their_kernels_too() -> None:
    found = profiled(
        """
w = x.clone().requires_grad_()
with profile(activities=BOTH) as p:
    w.exp().sum().backward()  # backward runs in a thread of autograd's
row = {r.key: r for r in p.key_averages()}["ExpBackward0"]
tell(us=row.device_time_total)
"""
    )
    assert found["us"] > 0

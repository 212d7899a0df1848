"""torch.profiler: PyTorch's CPU kernels are the CPU device's work, and are shown as it."""

import pytest
import torch
from profiles_taken import profiled

pytestmark = pytest.mark.skipif(
    torch.cuda._is_compiled(), reason="profiles show no work of xpu beside CUDA's"
)

EXP = """
with profile(activities=BOTH) as p:
    for _ in range(3):
        y = x.exp()
    y.cpu()
"""


@pytest.mark.parametrize("mapping", ["CPU", "AUTO", "explicit"])
def test_a_native_kernel_is_work_of_the_device(mapping: str) -> None:
    found = profiled(
        "x = x.to(f'xpu:{torch.xpu.device_count() - 1}')  # GPUs come first\n"
        + EXP
        + """
kernels = [e for e in on_device(p) if e.name == "aten::exp [native]"]
ops = [e for e in p.events() if e.name == "aten::exp"]
rows = {row.key: row for row in p.key_averages()}
table = p.key_averages().table(sort_by="self_device_time_total")
tell(kernels=[e.time_range.elapsed_us() for e in kernels],
     index={e.device_index for e in kernels} == {x.device.index},
     within=all(op.time_range.start - 20 <= k.time_range.start
                and k.time_range.end <= op.time_range.end + 20
                for op, k in zip(ops, kernels)),
     exp=rows["aten::exp"].self_device_time_total,
     total=sum(e.time_range.elapsed_us() for e in on_device(p)),
     all=sum(row.self_device_time_total for row in rows.values()
             if row.device_type == DeviceType.CPU),
     columns="Self XPU" in table and "aten::exp [native]" in table)
""",
        policy="native",
        XPURT_MAPPING=mapping,
        XPURT_VIRTUAL_GPU="strict",
    )
    assert len(found["kernels"]) == 3
    assert min(found["kernels"]) > 0
    assert found["index"]
    assert found["within"]
    assert found["exp"] == pytest.approx(sum(found["kernels"]))
    assert found["all"] == pytest.approx(found["total"])
    assert found["columns"]


@pytest.mark.rest
def test_ops_that_are_run_from_a_stack_are_there_too() -> None:
    """Those without an unboxed kernel, copies, zeros, and the backward's."""
    found = profiled(
        """
w = x.clone().requires_grad_()
with profile(activities=BOTH) as p:
    x.digamma()
    torch.zeros(5, device="xpu")
    torch.ones(9).to("xpu")
    w.cumsum(0).sum().backward()
rows = {row.key: row.device_time_total for row in p.key_averages()}
tell(names=sorted({e.name for e in on_device(p)}), back=rows["CumsumBackward0"])
""",
        policy="native",
    )
    wanted = {"digamma", "zero_", "copy_", "cumsum", "sum.dim_IntList"}
    assert {f"aten::{op} [native]" for op in wanted} <= set(found["names"])
    assert found["back"] > 0


@pytest.mark.rest
def test_the_wait_for_operands_is_not_the_kernels_time() -> None:
    found = profiled(
        """
stream = torch.xpu.current_stream()
with profile(activities=BOTH) as p:
    with xpurt.kernel_policy("sycl"):
        _C._submit_sleep(stream.stream_id, stream.device_index, 0.2)
        y = x + 1
    y.exp()
op, = [e for e in p.events() if e.name == "aten::exp"]
kernel, = [e for e in on_device(p) if e.name == "aten::exp [native]"]
tell(op=op.time_range.elapsed_us(), kernel=kernel.time_range.elapsed_us(),
     late=kernel.time_range.end - op.time_range.end)
""",
        policy="native",
    )
    assert found["op"] > 150_000
    assert found["kernel"] < 100_000
    assert found["late"] < 1000


def test_the_trace_has_a_row_for_them_beside_the_queues() -> None:
    found = profiled(
        """
with profile(activities=BOTH, with_stack=True, profile_memory=True,
             record_shapes=True) as p:
    x.exp()
    with xpurt.kernel_policy("sycl"):
        x.exp()
    torch.xpu.synchronize()
events = trace(p)
rows = {e["tid"]: e["args"]["name"] for e in events
        if e["name"] == "thread_name" and e["pid"] == 0}
kernels = [e for e in events if e.get("cat") == "kernel"]
tell(rows=[rows[e["tid"]] for e in kernels], names=[e["name"] for e in kernels],
     positive=all(e["dur"] > 0 and e["pid"] == 0 for e in kernels),
     device={e["args"]["physical device"] for e in kernels}
            == {xpurt.physical_devices()[-1].number})
""",
        policy="native",
        XPURT_VIRTUAL_GPU="off",
    )
    assert found["positive"]
    rows = dict(zip(found["names"], found["rows"], strict=True))
    native = rows.pop("aten::exp [native]")
    (queue,) = rows.values()
    assert native == f"{queue}, PyTorch's CPU kernels"
    assert "stream 0" in queue


def test_on_a_gpu_that_the_host_cannot_read_there_are_copies_alone() -> None:
    """The CPU's kernel is not the GPU's work."""
    found = profiled(
        EXP + "tell(names=sorted({e.name for e in on_device(p)}))",
        policy="native",
        XPURT_MAPPING="GPU",
        XPURT_FALLBACK="silent",
        XPURT_VIRTUAL_GPU="strict",
    )
    assert found["names"] == ["memcpy"]


@pytest.mark.rest
def test_each_cycle_of_a_schedule_has_its_own() -> None:
    found = profiled(
        """
from torch.profiler import schedule
counts = []
def ready(p):
    kernels = [e for e in trace(p) if e.get("cat") == "kernel"]
    counts.append(sum(e["name"] == "aten::exp [native]" for e in kernels))
with profile(activities=BOTH, on_trace_ready=ready, acc_events=True,
             schedule=schedule(wait=1, warmup=1, active=1, repeat=2)) as p:
    for step in range(8):
        for _ in range(step):
            x.exp()
        p.step()
tell(counts=counts)
""",
        policy="native",
    )
    assert found == {"counts": [2, 5]}


def test_a_profile_of_the_cpu_alone_has_none() -> None:
    found = profiled(
        """
with profile(activities=[ProfilerActivity.CPU]) as p:
    x.exp()
tell(on_device=len(on_device(p)), recorded=[e["name"] for e in trace(p)
                                            if e.get("cat") == "kernel"])
""",
        policy="native",
    )
    assert found == {"on_device": 0, "recorded": []}

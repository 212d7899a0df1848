"""What PyTorch's report and counters of lazy tensors have of this backend."""

import pytest
from lazy_mappings import with_gpu
from own_process import compiling_output
from own_process import output as plain_output

START = """
import logging, torch
logging.disable(logging.WARNING)  # of PyTorch's compiler
import xpurt.lazy
from torch._lazy import metrics

def counted(*names):
    return [metrics.counter_value("xpurt::" + each) for each in names]
"""

TRANSFERS = (
    START
    + """
xpurt.lazy.init(compile="never")
x = torch.ones(8, 4).to("lazy")
names = [way + "_" + where for where in ("to_device", "from_device")
         for way in ("transfers", "bytes")]
print(counted(*names))
xpurt.lazy.step()
y = x @ x.t()
xpurt.lazy.step()
print(counted(*names))
y.cpu()
torch.empty(8, 8).copy_(y)
y.sum().item()
print(counted(*names))
report = metrics.metrics_report()
for name in ("TransferToDevice", "TransferFromDevice"):
    lines = report.partition(f"Metric: {name}\\n")[2].splitlines()
    print(*(each.strip() for each in lines[:2]))
metrics.reset()
print(counted(*names), "Transfer" in metrics.metrics_report())
"""
)


def test_transfers_are_counted() -> None:
    assert plain_output(TRANSFERS).splitlines() == [
        "[None, None, None, None]",
        f"[1, {8 * 4 * 4}, None, None]",
        # The number that `item` returns is a double.
        f"[1, {8 * 4 * 4}, 3, {2 * 8 * 8 * 4 + 8}]",
        "TotalSamples: 1 Accumulator: 128.00B",
        "TotalSamples: 3 Accumulator: 520.00B",
        "[None, None, None, None] False",
    ]


FORMS = (
    START
    + """
xpurt.lazy.init(compile="always", sizes="symbolic")
def run(size):
    (torch.ones(size, 3).to("lazy").sin() * 2).cpu()
names = "run_compiled", "run_op_by_op", "code_compiled", "code_found", "code_refused"
for size in (8, 8, 9, 10):
    run(size)
    print(counted(*names), metrics.counter_value("UncachedCompile"))
report = metrics.metrics_report()
print(*(name for name in ("CompileTime", "ExecuteTime") if f"Metric: {name}" in report))
from torch._inductor import compile_fx
def refuse(*args, **kwargs):
    raise NotImplementedError("no code today")
compile_fx.compile_fx = refuse
torch.ones(3).to("lazy").exp().cpu()
print(counted(*names))
"""
)


@pytest.mark.rest
def test_runs_and_the_code_of_graphs_are_counted() -> None:
    # So that no time chooses the form.
    assert compiling_output(FORMS, XPURT_LEARN="0").splitlines() == [
        "[1, None, 1, None, None] 1",
        "[2, None, 1, None, None] 1",
        "[3, None, 2, None, None] 2",
        "[4, None, 2, 1, None] 3",
        "CompileTime ExecuteTime",
        "[4, 1, 2, 1, 1]",
    ]


MEMORY = (
    START
    + """
xpurt.lazy.init(compile="never")
x = torch.ones(1024, device="lazy") + 1
xpurt.lazy.step()
here = f"xpu:{torch.xpu.current_device()}"
assert counted(f"allocated_bytes:{here}") == [torch.xpu.memory_allocated()] != [0]
report = metrics.metrics_report()
line = report.partition(f"Memory: {here}\\n")[2].splitlines()[0]
assert line == f"  Allocated: {torch.xpu.memory_allocated() / 1024:.2f}KB", line
print(report.count("Memory: xpu:") == torch.xpu.device_count())
"""
)


@pytest.mark.parametrize("mapping", ["CPU", "explicit"])
def test_the_report_has_the_memory_of_each_device(mapping: str) -> None:
    assert plain_output(MEMORY, XPURT_MAPPING=mapping) == "True"


FALLBACKS = (
    START
    + """
xpurt.lazy.init(compile="never")
outside = torch.linalg.qr(torch.eye(3, device="xpu"))
x = torch.eye(4).to("lazy")
for _ in range(2):
    (torch.linalg.qr(x)[0] + 1).cpu()
print(xpurt.lazy.fallbacks())
assert "Counter: aten::linalg_qr" in metrics.metrics_report()
metrics.reset()
print(xpurt.lazy.fallbacks())
"""
)


def test_ops_of_a_graph_that_the_cpu_computes_on_copies_are_counted() -> None:
    found = plain_output(
        FALLBACKS, XPURT_MAPPING=with_gpu("GPU"), XPURT_FALLBACK="silent"
    )
    assert found.splitlines() == ["{'aten::linalg_qr': 2}", "{}"]

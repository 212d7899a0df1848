"""What a user can see of lazy graphs: their code, when they are compiled, and their time."""

import pytest
import torch
from own_process import compiling_output as output
from own_process import compiling_run as run

START = """
import logging, time, torch
logging.disable(logging.WARNING)  # of PyTorch's compiler
import xpurt, xpurt.lazy
def chain(x, n=5):
    for _ in range(n):
        x = torch.sin(x) * 1.5
    return x
"""

CODE = (
    START
    + """
xpurt.lazy.init(compile="always")
x = torch.rand(100).to("lazy")
before = xpurt.lazy.text(chain(x))
assert "did not run" in before and "cpp" not in before, before
chain(x).cpu()
after = xpurt.lazy.text(chain(x))
assert "lazy graph 1 of " in after and "was compiled for t0 float64[], t1 float32[100], to:" in after, after
assert "def call(" in after and "aten::sin" in after, after
other = xpurt.lazy.text(chain(torch.rand(101).to("lazy")))
assert "did not run" in other and "def call(" not in other, other
(row,) = xpurt.lazy.compilations()
assert "def call(" in row.code and row.graph.startswith("lazy graph 1 of "), row
print(xpurt.lazy.compilations())
"""
)


@pytest.mark.rest
def test_the_text_of_a_compiled_graph_has_its_code() -> None:
    heading, _, row = output(CODE).splitlines()
    assert heading.split() == ["graph", "seconds", "why", "then", "sizes", "result"]
    assert 'init(compile="always")' in row
    assert row.endswith("compiled")


WAITS = (
    START
    + """
xpurt.lazy.init()
x = torch.rand(100).to("lazy")
for run in range(4):
    if run == 1:
        assert "1 run(s), none of them timed" in xpurt.lazy.text(chain(x))
    chain(x).cpu()
print(xpurt.lazy.text(chain(x)).splitlines()[-1])
assert len(xpurt.lazy.compilations()) == 0
"""
)


def test_the_text_of_another_graph_says_when_it_is_compiled() -> None:
    line = output(WAITS)
    assert line.startswith("lazy graph 1 of 10 ops is not compiled yet: 4 runs of "), (
        line
    )
    # 1 second, and 20 ms for each op; in 3 digits.
    assert line.endswith("it is compiled once they took 1.2e+03 ms"), line


FAILED = (
    START
    + """
from torch._inductor import compile_fx
def refuse(*args, **kwargs):
    raise NotImplementedError("no code today")
compile_fx.compile_fx = refuse
xpurt.lazy.init(compile="always")
x = torch.rand(100).to("lazy")
chain(x).cpu()
print(xpurt.lazy.text(chain(x)).splitlines()[-1])
"""
)


def test_the_text_of_a_graph_that_cannot_be_compiled_has_the_reason() -> None:
    found = output(FAILED)
    assert found.endswith("is not compiled: NotImplementedError: no code today"), found


TIMES = (
    START
    + """
xpurt.lazy.init(compile="never")
x = torch.rand(1000).to("lazy")
chain(x).cpu()
xpurt.op_report(reset=True)
begin = time.perf_counter()
with xpurt.timeline({path!r}) as found:
    for _ in range(3):
        chain(x).cpu()
    chain(x, 2).cpu()
spent_ms = (time.perf_counter() - begin) * 1e3
names = [run.name for run in found.graphs]
rows = [row for row in xpurt.op_report() if row.op.startswith("lazy graph ")]
print(names)
print([(row.op, row.tier, row.device, row.calls) for row in rows])
assert all(run.end_us > run.start_us for run in found.graphs)
assert all(row.time_ms > 0 for row in rows)
assert sum(row.time_ms for row in rows) < spent_ms
xpurt.op_report(reset=True)
assert not [row for row in xpurt.op_report() if row.op.startswith("lazy graph ")]
xpurt.lazy.init(compile="always")
chain(x).cpu()
forms = set()
with xpurt.timeline() as later:
    for _ in range(14):
        chain(x).cpu()
print(sorted({{run.name.rpartition(", ")[2] for run in later.graphs}}))
print(sorted({{row.tier for row in xpurt.op_report() if "lazy graph 1 " in row.op}}))
"""
)


@pytest.mark.rest
@pytest.mark.skipif(torch.cuda._is_compiled(), reason="no timelines beside CUDA's")
def test_the_runs_of_graphs_are_in_the_report_and_in_the_timeline(tmp_path) -> None:
    picture = tmp_path / "graphs.png"
    ended = run(TIMES.format(path=str(picture)))  # the profiler writes to stderr
    assert ended.returncode == 0, ended.stderr
    names, rows, forms, tiers = ended.stdout.splitlines()
    first, second = "lazy graph 1 of 10 ops", "lazy graph 2 of 4 ops"
    assert names == str([f"{first}, op by op"] * 3 + [f"{second}, op by op"])
    assert str((first, "op by op", "xpu:0", 3)) in rows
    assert str((second, "op by op", "xpu:0", 1)) in rows
    # Both forms are tried.
    assert forms == tiers == "['compiled', 'op by op']"
    assert picture.stat().st_size > 1000

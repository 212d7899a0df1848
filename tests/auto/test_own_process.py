"""AUTO with devices that this process does not have, and how processes end."""

import pytest
from own_process import output
from own_process import run_to_the_end as run

BEGIN = """
import torch, xpurt
from xpurt import _C, mapping
devices = mapping.current_placement().ordinals[0]
kinds = [d.kind for d in devices]
def only(kind):
    _C.set_device_costs(0, [(0 if k == kind else 1e9, 1e9, 1e9, 0, 1e9) for k in kinds])
def ran_on(op):
    names = {d.name: d.kind for d in devices}
    rows = xpurt.op_report(reset=True)
    return sorted({names[row.device] for row in rows if row.op.startswith(op)})
xpurt.set_kernel_policy("sycl")
only("gpu")
"""


def auto(code: str, **environment: str) -> list[str]:
    return output(
        BEGIN + code, XPURT_MAPPING="AUTO", XPURT_VIRTUAL_GPU="strict", **environment
    ).splitlines()


def test_doubles_stay_on_the_device_that_has_them() -> None:
    assert auto(
        """
x = torch.arange(8.0, device="xpu")
y = x.tanh(); print(ran_on("aten::tanh"), y.dtype)
z = y.double().tanh(); print(ran_on("aten::tanh"), z.dtype)
print(torch.allclose(z.cpu(), torch.arange(8.0).tanh().double().tanh(), atol=1e-6))
w = x.sum(dtype=torch.float64).float(); print(ran_on("aten::sum"), w.item())
print(torch.xpu.get_device_properties(0).has_fp64)
""",
        XPURT_VIRTUAL_GPU_FP64="0",
    ) == [
        "['gpu'] torch.float32",
        "['cpu'] torch.float64",
        "True",
        "['cpu'] 28.0",
        "False",
    ]


def test_a_gpu_that_is_too_small_loses_nothing() -> None:
    assert auto(
        """
mib = 1 << 20
many = [torch.full((mib,), float(i), device="xpu") for i in range(8)]
many = [t + 1 for t in many]           # 32 MiB and as much in sources, on 24 MiB
for t in many: t.mul_(2)
big = torch.full((8 * mib,), 3.0, device="xpu") * 2   # 32 MiB: fits nowhere but home
print(big.cpu().unique().tolist())
print([t.cpu().unique().tolist() for t in many])
pairs = [many[i] + many[-1 - i] for i in range(8)]
print([t.cpu().unique().tolist() for t in pairs])
print(_C.testing.replica_bytes(0, kinds.index("gpu")) <= 24 * mib)
del many, big, pairs, t
print(_C.testing.replica_bytes(0, kinds.index("gpu")))
""",
        XPURT_VIRTUAL_GPU_MEMORY=str(24 << 20),
    ) == [
        "[6.0]",
        str([[2.0 * (i + 1)] for i in range(8)]),
        str([[18.0]] * 8),
        "True",
        "0",
    ]


def test_properties_are_of_all_devices() -> None:
    assert auto(
        """
found = torch.xpu.get_device_properties(0)
print(found.name == devices[0].name)
print(found.total_memory == sum(d.memory_bytes for d in devices))
print(found.has_fp64, torch.xpu.device_count())
"""
    ) == ["True", "True", "True 1"]


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "end",
    [
        "",
        "raise SystemExit(0)",
        "import threading; threading.Thread(target=work).start()",
    ],
)
def test_exit_with_work_in_flight(end: str) -> None:
    ended = run(
        BEGIN
        + """
def work():
    x = torch.ones(1 << 18, device="xpu")
    for i in range(60):
        only("gpu" if i % 3 else "cpu")
        x = x * 0.5 + 1
    return x
kept = work()
"""
        + end,
        XPURT_MAPPING="AUTO",
        XPURT_VIRTUAL_GPU="strict",
    )
    assert (ended.returncode, ended.stderr) == (0, "")

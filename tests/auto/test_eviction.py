"""A device without room gives up the copies whose next use is farthest away."""

import pytest

from auto.test_own_process import auto

MIB = 1 << 20

SETUP = """
mib = 1 << 20
gpu = kinds.index("gpu")
def held(t):
    names = {d.filter_string: d.kind for d in xpurt.physical_devices()}
    return sorted(names[each] for each in xpurt.where(t))
def full(value):  # 4 MiB
    return torch.full((mib,), value, device="xpu")
def here(tensor):
    return "gpu" in held(tensor)
"""


def small(code: str) -> list[str]:
    return auto(SETUP + code, XPURT_VIRTUAL_GPU_MEMORY=str(22 * MIB))


def test_the_least_recently_used_goes_first() -> None:
    assert small(
        """
only("cpu"); many = [full(float(i)) for i in range(7)]
torch.xpu.synchronize()
only("gpu"); total = torch.zeros(1, device="xpu")
def use(t): total.add_(t[:1])
for t in many[:5]: use(t)
print([here(t) for t in many])
use(many[0])                     # now 1 is the oldest
use(many[5])
print([here(t) for t in many])
use(many[6])
print([here(t) for t in many])
print(total.item())
"""
    ) == [
        str([True] * 5 + [False] * 2),
        str([True, False, True, True, True, True, False]),
        str([True, False, False, True, True, True, True]),
        str(0.0 + 1 + 2 + 3 + 4 + 0 + 5 + 6),
    ]


def test_what_is_valid_nowhere_else_is_kept() -> None:
    assert small(
        """
only("cpu"); read = [full(1.0), full(2.0)]
torch.xpu.synchronize()
only("gpu"); total = torch.zeros(1, device="xpu")
for t in read: total.add_(t[:1])
written = [full(float(i)) for i in range(3)]   # valid on the GPU alone
print([held(t) for t in written], [here(t) for t in read])
more = full(9.0)                               # a clean copy goes
print([here(t) for t in written], [here(t) for t in read])
rest = [full(float(i)) for i in range(10, 14)] # now those have to be saved
print([t.cpu().unique().tolist() for t in [*written, *read, more, *rest]])
"""
    ) == [
        "[['gpu'], ['gpu'], ['gpu']] [True, True]",
        "[True, True, True] [False, True]",
        str([[0.0], [1.0], [2.0], [1.0], [2.0], [9.0], [10.0], [11.0], [12.0], [13.0]]),
    ]


LARGER = """
from xpurt import _C
weights = [torch.randn(1024, 1024) for _ in range(24)]  # 4 MiB each
x = torch.randn(8, 1024)
wanted = x
for weight in weights: wanted = wanted @ weight / 32
weights, x = [weight.to("xpu") for weight in weights], x.to("xpu")
only("gpu")
def call():
    before = sum(row[2] for row in _C.device_report())
    y = x
    for weight in weights: y = y @ weight / 32
    torch.testing.assert_close(y.cpu(), wanted, rtol=1e-3, atol=1e-3)
    return (sum(row[2] for row in _C.device_report()) - before) / (4 * mib)
for _ in range(3): call()
print(*(round(call()) for _ in range(4)))
"""


@pytest.mark.parametrize("resident", [6, 12, 21])
def test_of_a_model_larger_than_the_memory_a_part_stays(resident: int) -> None:
    """All but it is moved in each call, and two weights more: for the next weight, and
    for what is computed."""
    (line,) = auto(SETUP + LARGER, XPURT_VIRTUAL_GPU_MEMORY=str(resident * 4 * MIB))
    assert max(map(int, line.split())) <= 24 - resident + 2


def test_what_is_not_used_any_more_goes_first() -> None:
    assert small(
        """
only("cpu"); old, new = [[full(float(i)) for i in range(5)] for _ in range(2)]
torch.xpu.synchronize()
only("gpu"); total = torch.zeros(1, device="xpu")
def use(t): total.add_(t[:1])
for _ in range(3):
    for t in old: use(t)
for _ in range(4):
    for t in new: use(t)
print([here(t) for t in old], [here(t) for t in new])
"""
    ) == [str([False] * 5) + " " + str([True] * 5)]


def test_statistics_and_report_have_what_was_evicted() -> None:
    assert small(
        """
only("cpu"); many = [full(float(i)) for i in range(7)]
torch.xpu.synchronize()
only("gpu"); total = torch.zeros(1, device="xpu")
for t in many: total.add_(t[:1])
found = torch.xpu.memory_stats()
prefix = f"replica_bytes.{devices[gpu].filter_string}."
names = [key.removeprefix(prefix) for key in found if key.startswith("replica_bytes")]
print(*(f"{name} {found[prefix + name] // mib}" for name in names))
print([row.bytes_evicted // mib for row in xpurt.op_report().devices
       if row.device == devices[gpu].name], "evicted" in str(xpurt.op_report()))
"""
    ) == ["evicted 8 moved_from 0 moved_to 28 resident 20", "[8] True"]

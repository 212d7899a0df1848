"""Under AUTO, of weights that a device has no room for those stay on it that gain most;
the others are computed at home, or are copied for each use, whichever ends first."""

from collections.abc import Sequence

import pytest

from auto.test_own_process import auto

MIB = 1 << 20

# Costs stand in for the devices: rates in bytes and in operations per microsecond.
SETUP = """
import random
mib = 1 << 20
gpu = kinds.index("gpu")
def rates(home, there, link):
    _C.set_device_costs(0, [
        (1, *(there if k == "gpu" else home), 1, link) for k in kinds
    ])
xpurt.set_kernel_policy("sycl")
def weights(count):
    return [torch.randn(1024, 1024, device="xpu") for _ in range(count)]  # 4 MiB each
def is_here(tensor):
    names = {d.filter_string: d.kind for d in xpurt.physical_devices()}
    return "gpu" in {names[each] for each in xpurt.where(tensor)}
def moved():
    return sum(row[2] for row in _C.device_report()) / (4 * mib)
def run(layers, x):
    y = x
    for weight in layers:
        y = y @ weight / 32
    return y
def check(layers, x, y):
    wanted = run([each.cpu().double() for each in layers], x.cpu().double())
    torch.testing.assert_close(y.cpu().double(), wanted, rtol=1e-3, atol=1e-3)
"""


def larger(code: str, room: int) -> Sequence[str]:
    """`room`: of the GPU, in weights."""
    return auto(
        SETUP + code, XPURT_VIRTUAL_GPU_MEMORY=str(room * 4 * MIB), XPURT_LEARN="0"
    )


# The weights that the best of five rounds moves: the load of the machine delays choices.
LOOP = """
layers, x = weights(24), torch.randn(8, 1024, device="xpu")
def one_round():
    before = moved()
    y = run(layers, x)
    torch.xpu.synchronize()
    return moved() - before, y
for _ in range(6): one_round()
xpurt.op_report(reset=True)
least = min(one_round()[0] for _ in range(5))
print(round(least, 2), sum(map(is_here, layers)), ran_on("aten::mm"))
check(layers, x, one_round()[1])
"""


@pytest.mark.parametrize("room", [6, 12, 22])
def test_what_has_no_room_is_computed_at_home(room: int) -> None:
    """Copying takes twice as long as computing at home, which takes ten times as long as
    on the GPU."""
    (line,) = larger("rates((2e4, 1e9), (2e5, 1e9), 1e4)" + LOOP, room)
    weights_moved, resident, on = line.split(maxsplit=2)
    assert float(weights_moved) < 0.5
    assert room - 3 <= int(resident) <= room
    assert on == "['cpu', 'gpu']"


def test_what_has_no_room_is_copied_where_that_is_faster() -> None:
    (line,) = larger("rates((2e3, 1e9), (2e5, 1e9), 1e4)" + LOOP, 12)
    weights_moved, resident, _ = line.split(maxsplit=2)
    assert 24 - 12 <= float(weights_moved) <= 24 - 12 + 3
    assert int(resident) >= 9


def test_the_reason_names_the_room() -> None:
    lines = larger(
        """rates((2e4, 1e9), (2e5, 1e9), 1e4)
layers, x = weights(12), torch.randn(8, 1024, device="xpu")
for _ in range(4): run(layers, x)
torch.xpu.synchronize()
print(*{op.why for op in xpurt.explain(run, layers, x) if "mm" in op.op}, sep="\\n")
""",
        room=8,
    )
    assert any(line.endswith("has no room for the operands") for line in lines)


def test_those_stay_that_gain_most() -> None:
    """Operations take much longer at home, and so do products of many rows."""
    (line,) = larger(
        """rates((2e4, 2e5), (2e5, 4e6), 1e4)
few, many = weights(12), weights(12)
x, wide = torch.randn(1, 1024, device="xpu"), torch.randn(64, 1024, device="xpu")
def both():
    y, z = x, wide
    for one, other in zip(few, many, strict=True):
        y, z = y @ one / 32, z @ other / 32
    return y, z
def one_round():
    before = moved()
    both()
    torch.xpu.synchronize()
    return moved() - before
for _ in range(8): one_round()
least = min(one_round() for _ in range(5))
print(sum(map(is_here, few)), sum(map(is_here, many)), least < 4)
y, z = both()
check(few, x, y); check(many, wide, z)
""",
        room=14,
    )
    few, many, moves_little = line.split()
    assert int(many) >= 11
    assert int(few) <= 3
    assert moves_little == "True"


def test_experts_that_are_chosen_often_stay() -> None:
    (line,) = larger(
        """rates((2e4, 1e9), (2e5, 1e9), 1e4)
random.seed(1)
experts, x = weights(32), torch.randn(8, 1024, device="xpu")
# Half of the choices are of the first four experts.
often = [1 / 8] * 4 + [1 / 56] * 28
for _ in range(40):
    chosen = random.choices(experts, often, k=4)
    y = run(chosen, x); torch.xpu.synchronize()
before = moved()
for _ in range(20):
    chosen = random.choices(experts, often, k=4)
    y = run(chosen, x); torch.xpu.synchronize()
check(chosen, x, y)
print(sum(map(is_here, experts[:4])), (moved() - before) / 80)
""",
        room=8,
    )
    often, moved_per_expert = line.split()
    assert int(often) >= 3
    assert float(moved_per_expert) < 0.25


@pytest.mark.parametrize("memory", range(9, 60, 7))
def test_any_memory_that_holds_an_op_is_enough(memory: int) -> None:
    """`memory`: of the GPU, in MiB. The operands of an op take 8 MiB and little more."""
    code = """rates((2e3, 1e9), (2e5, 1e9), 1e4)  # the GPU is to run all
layers, x = weights(8), torch.randn(1024, 1024, device="xpu")[:8]
for _ in range(3): y = run(layers, x)
print(y.isfinite().all().item())
check(layers, x, y)
"""
    (line,) = auto(
        SETUP + code, XPURT_VIRTUAL_GPU_MEMORY=str(memory * MIB), XPURT_LEARN="0"
    )
    assert line == "True"


@pytest.mark.parametrize("kernels", [3, 20, 50])
def test_a_gpu_that_fails_in_between_gives_an_error_or_the_right_result(
    kernels: int,
) -> None:
    code = """rates((2e4, 1e9), (2e5, 1e9), 1e4)
copies = [torch.randn(1024, 1024) for _ in range(24)], torch.randn(8, 1024)
wanted = run(*copies)
layers, x = [each.to("xpu") for each in copies[0]], copies[1].to("xpu")
for _ in range(6):
    try:
        y = run(layers, x).cpu()
    except RuntimeError as error:
        print(type(error).__name__, "lost" in str(error) or "fail" in str(error))
    else:
        torch.testing.assert_close(y, wanted, rtol=1e-3, atol=1e-3)
        print("right")
"""
    lines = auto(
        "import warnings; warnings.simplefilter('ignore')\n" + SETUP + code,
        XPURT_VIRTUAL_GPU_MEMORY=str(48 * MIB),
        XPURT_VIRTUAL_GPU_FAIL_AFTER=str(kernels),
        XPURT_LEARN="0",
    )
    assert lines[-1] == "right"  # the CPU goes on
    assert set(lines) <= {"right", "RuntimeError True", "DeviceFailure True"}

"""A driver that refuses kernels, which the sources are spoilt for."""

from functools import partial

import own_process
import pytest
import spoilt_kernels

# Each test is a process that builds kernels.
output = partial(own_process.output, timeout=180)
run = partial(own_process.run, timeout=180)

SPOILT = (
    spoilt_kernels.SPOILT
    + """
import torch, xpurt

def tiers(op):
    return sorted({row.tier for row in xpurt.op_report(reset=True) if row.op == op})

torch.ones(1, device="xpu")
flat = [(1.0, 100.0, 1.0)]
"""
)

ON_CPU = """
_C.set_cost_curves(0, 0, [(name, "f", "alike", flat) for name in ("dear", "scan", "cheap")])
"""


def test_the_native_kernel_takes_over_and_it_is_said_once() -> None:
    said = output(
        SPOILT
        + ON_CPU
        + """
spoil("exp")
x = torch.linspace(0, 1, 5000).to("xpu")
found, warned = quietly(lambda: x.exp())
assert torch.allclose(found.cpu(), x.cpu().exp())
assert len(warned) == 1 and "refuses to build" in warned[0], warned
assert "this is no C" not in warned[0] or "error" in warned[0]
assert tiers("aten::exp") == ["native"]
built = _C.testing.built_kernels()
for again in (x.exp, x.exp_, lambda: torch.exp(x, out=torch.empty_like(x))):
    _, warned = quietly(again)
    assert warned == [], warned
print(tiers("aten::exp"), _C.testing.built_kernels() - built)
quietly(lambda: x.sinc())
print(tiers("aten::sinc"))
"""
    )
    assert said.splitlines() == ["['native'] 0", "['sycl']"]


def test_under_sycl_it_raises() -> None:
    ended = run(
        SPOILT
        + """
spoil("exp")
xpurt.set_kernel_policy("sycl")
torch.ones(5000, device="xpu").exp()
"""
    )
    assert ended.returncode == 1
    assert "KernelBuildError" in ended.stderr


def test_elsewhere_the_op_runs_on_a_copy() -> None:
    said = output(
        SPOILT
        + """
spoil("exp")
x = torch.linspace(0, 1, 5000).to("xpu")
found, warned = quietly(lambda: x.exp())
assert torch.allclose(found.cpu(), x.cpu().exp())
assert any("refuses to build" in each for each in warned), warned
print(tiers("aten::exp"))
_, warned = quietly(lambda: x.exp())
print(len(warned), tiers("aten::exp"))
""",
        XPURT_MAPPING="GPU",
    )
    assert said.splitlines() == ["['copy']", "0 ['copy']"]


def test_fallbacks_that_are_forbidden_stay_so() -> None:
    ended = run(
        SPOILT + 'spoil("exp")\ntorch.ones(5000, device="xpu").exp()',
        XPURT_MAPPING="GPU",
        XPURT_FALLBACK="error",
    )
    assert "FallbackError" in ended.stderr


def test_of_several_devices_another_builds_it() -> None:
    """The first device that builds it gets the invalid source: the preferred GPU."""
    said = output(
        SPOILT
        + """
spoil("exp", when=lambda: len(asked) == 1)
x = torch.linspace(0, 1, 5000).to("xpu")
with xpurt.prefer("GPU"):
    found, warned = quietly(lambda: x.exp())
    assert len(warned) == 1, warned
    assert torch.allclose(found.cpu(), x.cpu().exp())
    print(tiers("aten::exp"))
    _, warned = quietly(lambda: x.exp())
    print(len(warned), tiers("aten::exp"))
""",
        XPURT_MAPPING="AUTO",
    )
    assert said.splitlines() == ["['sycl']", "0 ['sycl']"]


def test_in_place_nothing_is_computed_twice() -> None:
    """The op has two steps, of which the second one is refused."""
    said = output(
        SPOILT
        + """
from xpurt.kernels.kinds.custom_kernel import CustomKernel
from xpurt.kernels.rows.table import ROWS
several = [row.aten for row in ROWS
           if isinstance(row, CustomKernel) and len(row.steps) > 1]
assert "_index_put_impl_" in several or several, several
spoil(*(f"{name}/1" for name in several))
x = torch.zeros(64, 64).to("xpu")
index = torch.arange(64).to("xpu")
ones = torch.ones(64, 64).to("xpu")
curves = [(name, "f", layout, flat) for name in ("scattering",)
          for layout in ("alike", "mixed")]
_C.set_cost_curves(0, 0, curves)
found, warned = quietly(lambda: x.index_put_((index,), ones, accumulate=True))
assert torch.equal(x.cpu(), torch.ones(64, 64)), x
print("right")
"""
    )
    assert said.endswith("right")


@pytest.mark.parametrize("learn", ["0", "1"])
def test_with_learning_and_without(learn: str) -> None:
    said = output(
        SPOILT
        + ON_CPU
        + """
spoil("exp")
_C.testing.set_learning_bias(1e6, 0)  # so that a trial comes soon
x = torch.linspace(0, 1, 5000).to("xpu")
said = []
for _ in range(50):
    found, warned = quietly(lambda: x.exp())
    said += warned
    assert torch.allclose(found.cpu(), x.cpu().exp())
print(len(said), tiers("aten::exp"))
""",
        XPURT_LEARN=learn,
    )
    assert said == "1 ['native']"


@pytest.mark.parametrize("mapping", ["CPU", "AUTO"])
def test_a_copy_has_a_next_tier_too(mapping: str) -> None:
    said = output(
        SPOILT
        + ON_CPU
        + """
spoil("copy_")
cpu = torch.arange(1 << 16).view(256, 256)
x = cpu.to("xpu")
with xpurt.prefer("CPU"):
    found, warned = quietly(lambda: x.t().contiguous())
print(torch.equal(found.cpu(), cpu.t()), "native" in tiers("aten::copy_"))
""",
        XPURT_MAPPING=mapping,
    )
    assert said == "True True"


def test_an_error_of_earlier_work_is_not_taken_for_a_refusal() -> None:
    """A part of the op is refused. The copy on which it runs instead waits for earlier
    work, and raises that error out of the op."""
    said = output(
        SPOILT
        + """
x, y = torch.rand(2, 9).to("xpu")
wrong = torch.tensor([[9]], device="xpu")
spoil("sub")
torch.nn.functional.embedding_bag(wrong, torch.ones(3, 4, device="xpu"))
for _ in range(2):
    try: quietly(lambda: torch.nn.functional.mse_loss(x, y))
    except RuntimeError as error: print("submitted earlier" in str(error))
print(tiers("aten::mse_loss"))
""",
        XPURT_MAPPING="GPU",
        XPURT_VIRTUAL_GPU="strict",
    )
    assert said.splitlines() == ["True", "['sycl']"]

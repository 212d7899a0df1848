"""Random numbers of compiled code come from the generator of xpu."""

import pytest
import torch
from own_process import compiling_run as run
from torch import Tensor
from torch._inductor import config
from torch._subclasses import FakeTensorMode
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

import xpurt
from xpurt import _C
from xpurt.compiler import random_ops

# Ops that take seeds, but that no graph for the host has: they are of other devices, or
# composites that are always decomposed.
ELSEWHERE = "_cudnn miopen _flash _efficient _scaled_dot _fused_dropout".split()
COMPOSITE = "gru. lstm. rnn_ rrelu. scaled_dot_product dropout. alpha_ feature_".split()


def draws(x: Tensor) -> list[Tensor]:
    return [
        torch.rand_like(x) + torch.randn(4, 4, device=x.device),
        F.dropout(x, 0.3),
        torch.randint(0, 9, (5,), device=x.device),
        torch.bernoulli(x.abs().clamp(0, 1)),
        torch.randperm(7, device=x.device),
        torch.multinomial(x.abs() + 0.1, 2),
        torch.empty_like(x).uniform_(),
        torch.normal(x, x.abs()),
    ]


@pytest.mark.mappings("CPU")
@pytest.mark.parametrize("fallback", [True, False])
def test_numbers_follow_the_seed_of_xpu(xpu: torch.device, fallback: bool) -> None:
    if not _C.host_reads(xpu.index):
        pytest.skip("compiled code runs op by op")
    x = torch.randn(4, 4).to(xpu)
    with config.patch(fallback_random=fallback):
        compiled = torch.compile(draws)
        compiled(x)
        runs = []
        for function in (compiled, compiled, draws):
            torch.default_generator.manual_seed(len(runs))  # it must not matter
            torch.xpu.manual_seed(1)
            runs.append((function(x), torch.xpu.get_rng_state()))
    (first, state), (second, same), (eager, as_eager) = runs
    assert all(map(torch.equal, first, second))
    assert torch.equal(state, same)
    if fallback:
        assert all(map(torch.equal, first, eager))
        assert torch.equal(state, as_eager)


# Not sycl with Inductor's own numbers: a driver for CPUs ends the process while it
# vectorizes the kernel of the gradient.
@pytest.mark.parametrize(
    ("policy", "fallback"), [("native", True), ("native", False), ("sycl", True)]
)
def test_a_block_that_is_computed_again_draws_the_same_numbers(
    xpu: torch.device, policy: str, fallback: bool
) -> None:
    def block(x: Tensor) -> Tensor:
        return F.dropout(x.sin().cos(), 0.5) * x

    x = torch.ones(1000, device=xpu, requires_grad=True)
    with xpurt.kernel_policy(policy), config.patch(fallback_random=fallback):
        compiled = torch.compile(lambda x: checkpoint(block, x, use_reentrant=False))
        found = compiled(x)
        (gradient,) = torch.autograd.grad(found.sum(), x)
    assert torch.equal(found == 0, gradient == 0)
    assert 300 < int((found == 0).sum()) < 700


def test_the_state_of_the_generator_while_a_compiler_traces(xpu: torch.device) -> None:
    """Inductor saves it around a block that is computed again."""
    with FakeTensorMode():
        found = torch.xpu.get_rng_state(xpu)
    assert torch.equal(found, torch.xpu.get_rng_state(xpu))


def test_every_random_op_is_replaced() -> None:
    found = set()
    for packet in dir(torch.ops.aten):
        for overload in getattr(getattr(torch.ops.aten, packet), "overloads", list)():
            op = getattr(getattr(torch.ops.aten, packet), overload)
            name = f"{packet}.{overload}"
            if (
                torch.Tag.nondeterministic_seeded in op.tags
                and not op._schema.is_mutable
                and "generator" not in overload
                and not name.startswith((*ELSEWHERE, *COMPOSITE))
            ):
                found.add(name)
    assert found <= set(random_ops.ATEN)


@pytest.mark.rest
def test_compiled_code_leaves_no_memory_of_xpu_behind() -> None:
    code = """
import torch
from torch._inductor import config
x = torch.randn(4, 4, device="xpu")
with config.patch(fallback_random=True):
    compiled = torch.compile(lambda x: torch.normal(x, x.abs()))
    compiled(x)
del compiled, x
torch._dynamo.reset()
print(torch.xpu.memory_allocated())
"""
    ended = run(code)
    assert ended.stdout == "0\n", ended.stderr

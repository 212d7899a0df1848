"""Ops that xpu has kernels for and the CPU has none, in compiled programs."""

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from compiler.device_only_calls import CALLS
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.multiprocessing.reductions import StorageWeakRef
from torch.testing import assert_close
from torch.utils import _pytree as pytree

import xpurt
from xpurt.compiler import device_ops
from xpurt.compiler.device_only import ops

POLICIES = ["auto", "sycl"]


def test_each_op_has_a_call() -> None:
    found = {op._schema.name.partition("::")[2] for op in ops.found()}
    assert found == set(CALLS)


def test_views_of_one_tensor_stay_views_of_one() -> None:
    with FakeTensorMode():
        base = torch.empty(4, 6, dtype=torch.complex64)
        view = base.t()[1:, 2:].conj()
    made = [device_ops.faked(each, torch.device("xpu")) for each in (base, view)]
    refs = {StorageWeakRef(each.untyped_storage()) for each in made}
    assert len(refs) == 1
    assert made[1].stride() == (1, 6)
    assert made[1].storage_offset() == 13
    assert made[1].is_conj()
    assert {each.device.type for each in made} == {"xpu"}


def _of_each_policy() -> list[Any]:
    """One in three ops by default, with one policy, in turn; the others are slow tests."""
    return [
        pytest.param(
            name,
            policy,
            marks=[pytest.mark.slow] if (n + 3 * p) % 6 else [],
            id=f"{name}-{policy}",
        )
        for n, name in enumerate(CALLS)
        for p, policy in enumerate(POLICIES)
    ]


@pytest.mark.one_in(2)
@pytest.mark.mappings("CPU")
@pytest.mark.parametrize(("name", "policy"), _of_each_policy())
def test_a_call_of_each(xpu: torch.device, name: str, policy: str) -> None:
    op = getattr(torch.ops.aten, name)
    given = CALLS[name]()

    def doubled(*arguments: Any) -> Any:
        found = op(*arguments)
        of_floats = [each for each in _tensors(found) if each.is_floating_point()]
        # What the op writes to is a result, too.
        return [each * 2 for each in (*of_floats, *_tensors(arguments[:1]))], found

    expected = _run(doubled, given)
    torch._dynamo.reset()
    with xpurt.kernel_policy(policy):
        found = _run(torch.compile(doubled), given)
    assert_close(found, expected)


def _run(function: Any, given: Sequence[Any]) -> list[Tensor]:
    """The results of a call, and the gradients of its operands."""
    torch.xpu.manual_seed(0)
    arguments = [
        each.clone().requires_grad_(each.is_floating_point())
        if isinstance(each, Tensor)
        else each
        for each in given
    ]
    with torch.no_grad():
        results = _tensors(function(*(_detached(each) for each in arguments)))
    torch.xpu.manual_seed(0)
    try:
        sums = [each.sum() for each in function(*arguments)[0] if each.requires_grad]
        wanted = [each for each in arguments if isinstance(each, Tensor)]
        wanted = [each for each in wanted if each.requires_grad]
        made = torch.autograd.grad(sum(sums[1:], sums[0]), wanted, allow_unused=True)
    except NotImplementedError:
        return results  # the op has no derivative, or xpu has not
    except RuntimeError as error:
        if "derivative" not in str(error) and "requires grad" not in str(error):
            raise
        return results
    return results + [each for each in made if each is not None]


def _detached(value: Any) -> Any:
    return value.detach().clone() if isinstance(value, Tensor) else value


def _tensors(values: Any) -> list[Tensor]:
    return [each for each in pytree.tree_leaves(values) if isinstance(each, Tensor)]


@pytest.mark.each_value
@pytest.mark.mappings("CPU", "GPU", "AUTO")
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("kind", [nn.LSTMCell, nn.GRUCell])
@pytest.mark.parametrize("dynamic", [False, True])
def test_cells_train(xpu: torch.device, kind: Any, policy: str, dynamic: bool) -> None:
    cell = kind(8, 8).to(xpu)
    x = torch.randn(3, 8).to(xpu)
    compiled = torch.compile(cell, dynamic=dynamic, fullgraph=True)
    results = []
    with xpurt.kernel_policy(policy):
        for call in (cell, compiled):
            found = _tensors(call(x))
            grads = torch.autograd.grad(
                sum(each.sum() for each in found), cell.parameters()
            )
            results.append([*found, *grads])
    assert_close(results[1], results[0])

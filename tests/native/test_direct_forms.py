"""Ops that compute small results from the bytes of xpu tensors: every direct form of
csrc/dispatch/unboxed/direct_form.h, compared with the same op without it."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.testing import assert_close
from torch.utils._pytree import tree_map

import xpurt
from xpurt import _C
from xpurt.testing.oracle import agree

OPS = [name.removeprefix("aten::") for name in _C.testing.direct_ops()]
EXACT = {"rtol": 0.0, "atol": 0.0}
Arguments = tuple[Any, ...]


def function(op: str) -> Callable[..., Any]:
    name, _, overload = op.partition(".")
    return getattr(getattr(torch.ops.aten, name), overload or "default")


def f(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(shape).to(dtype)


def at(limit: int, *shape: int) -> torch.Tensor:
    return torch.randint(limit, shape)


HALF, DOUBLE, INT = torch.float16, torch.float64, torch.int32
LAST = torch.channels_last

# Calls that a direct form takes, and calls beside them that it leaves alone.
SOFTMAX: list[Callable[[], Arguments]] = [
    lambda: (f(3, 4), 1, False),
    lambda: (f(3, 4), 0, False),
    lambda: (f(2, 3, 4), -2, False),
    lambda: (f(5, dtype=DOUBLE), 0, False),
    lambda: (f(4, 3).t(), 1, False),
    lambda: (f(3, 4, dtype=HALF), 1, False),
    lambda: (f(3, 4, dtype=torch.bfloat16), 1, False),
    lambda: (f(), 0, False),
    lambda: (f(0, 3), 1, False),
    lambda: (f(3, 0), 1, False),
    lambda: (f(3, 4), 2, False),
    lambda: (f(3, 4), 1, True),
    lambda: (f(2, 3, 4, 5).to(memory_format=LAST), 1, False),
    lambda: (at(9, 3, 4), 1, False),
]
SOFTMAX_BACKWARD: list[Callable[[], Arguments]] = [
    lambda: (f(3, 4), f(3, 4).softmax(1), 1, torch.float32),
    lambda: (f(3, 4), f(3, 4).softmax(0), -2, torch.float32),
    lambda: (f(2, 3, 4), f(2, 3, 4).softmax(1), 1, torch.float32),
    lambda: (f(4, 3).t(), f(3, 4).softmax(1), 1, torch.float32),
    lambda: (f(3, 4), f(3, 4).softmax(1), 1, torch.float16),
    lambda: (f(3, 4, dtype=HALF), f(3, 4, dtype=HALF), 1, HALF),
    lambda: (f(1, 4).expand(3, 4), f(3, 4).softmax(1), 1, torch.float32),
    lambda: (f(3, 4), f(3, 4), 3, torch.float32),
]
COMPARE: list[Callable[[], Arguments]] = [
    lambda: (f(3, 4), 0.5),
    lambda: (f(3, 4).round(), 1),
    lambda: (f(3, 4).round(), True),
    lambda: (f(3, 4, dtype=DOUBLE), 1e300),
    lambda: (torch.tensor([0.1, 0.2]), 0.1),
    lambda: (f(3), float("nan")),
    lambda: (f(3), float("inf")),
    lambda: (f(3), 1e300),
    lambda: (f(3), -1e300),
    lambda: (f(), 0.0),
    lambda: (f(0), 0.0),
    lambda: (f(4, 3).t(), 0.0),
    lambda: (at(5, 3, 4), 2),
    lambda: (at(5, 3, 4), 2.5),
    lambda: (f(3, dtype=HALF), 0.1),
    lambda: (f(3, dtype=torch.complex64), 1.0),
    lambda: (f(3), 1j),
    lambda: (f(2, 3, 4, 5).to(memory_format=LAST), 0.0),
]
CALLS: dict[str, list[Callable[[], Arguments]]] = {
    "cat": [
        lambda: ([f(3), f(4)], 0),
        lambda: ([f(2, 3), f(2, 4)], 1),
        lambda: ([f(2, 3), f(5, 3)], -2),
        lambda: ([f(2, 3, 4), f(2, 1, 4), f(2, 2, 4)], 1),
        lambda: ([f(2, 3)] * 7, 0),
        lambda: ([f(2, 3, dtype=HALF), f(2, 3, dtype=HALF)], -1),
        lambda: ([f(2, dtype=torch.complex64)] * 2, 0),
        lambda: ([at(2, 3).bool(), at(2, 3).bool()], 0),
        lambda: ([f(3), f(3, dtype=DOUBLE)], 0),
        lambda: ([f(2, 3), f(3, 2).t()], 0),
        lambda: ([f(0), f(2, 3)], 0),
        lambda: ([f(0, 3), f(2, 3)], 0),
        lambda: ([f(1, 2, 1, 3), f(1, 2, 1, 3)], 1),
        lambda: ([f(2, 3, 4, 5).to(memory_format=LAST)] * 2, 1),
        lambda: ([f(7)[2:], f(7)[:1]], 0),
        lambda: ([f(), f()], 0),
        lambda: ([], 0),
        lambda: ([f(2, 3), f(3, 3)], 1),
        lambda: ([f(2, 3), f(2)], 0),
        lambda: ([f(2, 3)], 2),
        lambda: ([f(2, 3)], -3),
    ],
    "gather": [
        lambda: (f(3, 4), 1, at(4, 3, 2)),
        lambda: (f(3, 4), 0, at(3, 2, 4)),
        lambda: (f(3, 4), -2, at(3, 7, 3)),
        lambda: (f(2, 3, 4), 1, at(3, 2, 5, 2)),
        lambda: (f(2, 3, 4), 0, at(2, 1, 3, 4)),
        lambda: (f(2, 3, 4), 1, at(3, 2, 5, 4)),
        lambda: (f(2, 3, 4), 2, at(4, 2, 3, 1)),
        lambda: (f(5), 0, at(5, 9)),
        lambda: (f(1, 5), 1, at(5, 1, 2)),
        lambda: (f(3, 4, dtype=DOUBLE), 1, at(4, 3, 2)),
        lambda: (f(3, 4, dtype=torch.bfloat16), 1, at(4, 3, 2)),
        lambda: (at(2, 3, 4).bool(), 1, at(4, 3, 2)),
        lambda: (f(3, 4, dtype=torch.complex64), 1, at(4, 3, 2)),
        lambda: (f(3, 4, dtype=torch.complex128), 1, at(4, 3, 2)),
        lambda: (f(4, 3).t(), 1, at(4, 3, 2)),
        lambda: (f(3, 4), 1, at(4, 2, 3).t()),
        lambda: (f(3, 4), 1, at(4, 3, 2).to(INT)),
        lambda: (f(), 0, at(1)),
        lambda: (f(3, 4), 1, at(1, 3, 0)),
        lambda: (f(3, 4), 1, torch.tensor([[4]])),
        lambda: (f(3, 4), 1, torch.tensor([[-1]])),
        lambda: (f(3, 4), 1, at(4, 5, 2)),
        lambda: (f(3, 4), 2, at(4, 3, 2)),
        lambda: (f(3, 4), 1, at(4, 3)),
        lambda: (f(3, 4), 1, f(3, 2)),
    ],
    "index_select": [
        lambda: (f(3, 4), 0, at(3, 5)),
        lambda: (f(3, 4), 1, at(4, 2)),
        lambda: (f(2, 3, 4), -2, at(3, 6)),
        lambda: (f(7), 0, at(7, 3)),
        lambda: (f(3, 4), 0, at(3)),
        lambda: (f(3, 4, dtype=torch.complex128), 0, at(3, 2)),
        lambda: (at(2, 3, 4).bool(), 1, at(4, 2)),
        lambda: (f(4, 3).t(), 0, at(3, 2)),
        lambda: (f(2, 3, 4, 5).to(memory_format=LAST), 1, at(3, 2)),
        lambda: (f(3, 4), 0, at(3, 5).to(INT)),
        lambda: (f(3, 4), 0, at(3, 10)[::2]),
        lambda: (f(), 0, at(1, 1)),
        lambda: (f(3, 4), 0, at(1, 0)),
        lambda: (f(3, 0), 0, at(3, 2)),
        lambda: (f(3, 4), 0, torch.tensor([3])),
        lambda: (f(3, 4), 0, torch.tensor([-1])),
        lambda: (f(3, 4), 2, at(3, 2)),
        lambda: (f(3, 4), 0, at(3, 2, 2)),
        lambda: (f(3, 4), 0, f(2)),
    ],
    "index.Tensor": [
        lambda: (f(5, 3), [at(5, 4)]),
        lambda: (f(5, 3), [at(5, 2, 4)]),
        lambda: (f(5), [at(5, 2, 4)]),
        lambda: (f(5), [torch.tensor([-1, 0, -5])]),
        lambda: (f(5, 3, 2), [at(5, 1)]),
        lambda: (f(5, 3, dtype=torch.complex128), [at(5, 4)]),
        lambda: (f(5, 3), [at(5)]),
        lambda: (f(5, 3), [at(5, 4).to(INT)]),
        lambda: (f(5, 3), [at(5, 4, 2).t()]),
        lambda: (f(3, 5).t(), [at(5, 4)]),
        lambda: (f(2, 3, 4, 5).to(memory_format=LAST), [at(2, 3)]),
        lambda: (f(5, 3), [None, at(3, 4)]),
        lambda: (f(5, 3), [at(5, 4), at(3, 4)]),
        lambda: (f(5, 3), [at(2, 5).bool()]),
        lambda: (f(5, 3), [at(1, 0)]),
        lambda: (f(0, 3), [at(1, 0)]),
        lambda: (f(5, 3), [torch.tensor([5])]),
        lambda: (f(5, 3), [torch.tensor([-6])]),
        lambda: (f(), [at(1, 1)]),
    ],
    "where.self": [
        lambda: (f(3, 4) > 0, f(3, 4), f(3, 4)),
        lambda: (f(300) > 0, f(300), f(300)),
        lambda: (f(3) > 0, f(3, dtype=DOUBLE), f(3, dtype=DOUBLE)),
        lambda: (f(3) > 0, f(3, dtype=HALF), f(3, dtype=HALF)),
        lambda: (f(3) > 0, at(9, 3).to(torch.int8), at(9, 3).to(torch.int8)),
        lambda: (f(3) > 0, f(3, dtype=torch.complex64), f(3, dtype=torch.complex64)),
        lambda: (f(3) > 0, f(3), f(3, dtype=DOUBLE)),
        lambda: (f(3, 1) > 0, f(3, 4), f(4)),
        lambda: (f(3) > 0, f(3), torch.tensor(1.0)),
        lambda: (f(4, 3).t() > 0, f(3, 4), f(3, 4)),
        lambda: (
            f(2, 3, 4, 5) > 0,
            f(2, 3, 4, 5).to(memory_format=LAST),
            f(2, 3, 4, 5),
        ),
        lambda: (f() > 0, f(), f()),
        lambda: (f(0) > 0, f(0), f(0)),
        lambda: (f(3), f(3), f(3)),
        lambda: (f(2) > 0, f(3), f(3)),
    ],
    "mm": [
        lambda: (f(3, 4), f(4, 5)),
        lambda: (f(1, 1), f(1, 1)),
        lambda: (f(4, 3).t(), f(4, 5)),
        lambda: (f(3, 4), f(5, 4).t()),
        lambda: (f(4, 3).t(), f(5, 4).t()),
        lambda: (f(3, 4, dtype=DOUBLE), f(4, 5, dtype=DOUBLE)),
        lambda: (f(3, 9)[:, 2:6], f(4, 5)),
        lambda: (f(3, 8)[:, ::2], f(4, 5)),
        lambda: (f(1, 4).expand(3, 4), f(4, 5)),
        lambda: (f(4, 1), f(1, 5)),
        lambda: (f(3, 4, dtype=torch.bfloat16), f(4, 5, dtype=torch.bfloat16)),
        lambda: (f(3, 4, dtype=torch.complex64), f(4, 5, dtype=torch.complex64)),
        lambda: (at(5, 3, 4), at(5, 4, 5)),
        lambda: (f(3, 0), f(0, 5)),
        lambda: (f(0, 4), f(4, 5)),
        lambda: (f(3, 4), f(3, 4)),
        lambda: (f(3, 4), f(4)),
        lambda: (f(3, 4), f(4, 5, dtype=DOUBLE)),
    ],
    "_softmax": SOFTMAX,
    "_log_softmax": SOFTMAX,
    "_softmax_backward_data": SOFTMAX_BACKWARD,
    "_log_softmax_backward_data": SOFTMAX_BACKWARD,
    **{f"{name}.Scalar": COMPARE for name in ("eq", "ne", "lt", "gt", "le", "ge")},
}
EACH = [
    pytest.param(op, make, id=f"{op}-{number}")
    for op, makes in CALLS.items()
    for number, make in enumerate(makes)
]


def outcome(op: str, arguments: Arguments) -> Any:
    """The result, or what was raised."""
    try:
        return function(op)(*arguments)
    except (RuntimeError, IndexError, ValueError) as error:
        return type(error), str(error).partition("\n")[0]


def without_direct_form(op: str, arguments: Arguments) -> Any:
    _C.testing.set_direct_forms(False)
    try:
        return outcome(op, arguments)
    finally:
        _C.testing.set_direct_forms(True)


def same(found: Any, wanted: Any) -> None:
    if not isinstance(wanted, torch.Tensor):
        assert found == wanted
        return
    assert_close(found.cpu(), wanted.cpu(), **EXACT, equal_nan=True)
    assert found.stride() == wanted.stride()
    assert found.device == wanted.device
    assert found.is_inference() == wanted.is_inference()
    if not found.is_inference():
        assert found._version == wanted._version
    assert found.untyped_storage().nbytes() == wanted.untyped_storage().nbytes()


def test_every_direct_form_has_calls() -> None:
    assert set(OPS) == set(CALLS)


@pytest.mark.parametrize(("op", "make"), EACH)
def test_equals_the_way_without_it(
    op: str, make: Callable[[], Arguments], xpu: torch.device
) -> None:
    arguments = tree_map(lambda x: x.to(xpu) if torch.is_tensor(x) else x, make())
    same(outcome(op, arguments), without_direct_form(op, arguments))
    with torch.inference_mode():
        same(outcome(op, arguments), without_direct_form(op, arguments))


@pytest.mark.parametrize(("op", "make"), EACH)
def test_equals_the_cpu(
    op: str, make: Callable[[], Arguments], xpu: torch.device
) -> None:
    arguments = make()
    try:
        function(op)(*arguments)
    except (RuntimeError, IndexError, ValueError) as error:
        # What PyTorch itself refuses on the CPU, a row of xpurt's may compute.
        with pytest.raises(type(error)):
            agree(function(op), *arguments)
        return
    agree(function(op), *arguments, grads=False)


@pytest.mark.parametrize("op", CALLS)
def test_it_reads_what_is_pending(op: str, xpu: torch.device) -> None:
    """The operands are results of queued kernels."""
    arguments = CALLS[op][0]()
    wanted = function(op)(*arguments)

    def queued(value: Any) -> Any:
        if not torch.is_tensor(value):
            return value
        there = value.to(xpu)
        with xpurt.kernel_policy("sycl"):
            if value.dtype == torch.bool:
                return there.logical_not().logical_not()
            for _ in range(50):
                there = there + 0
        return there

    for _ in range(5):
        found = function(op)(*tree_map(queued, arguments))
        assert_close(found.cpu(), wanted)


@pytest.mark.parametrize("op", CALLS)
def test_it_is_counted(op: str, xpu: torch.device) -> None:
    arguments = tree_map(
        lambda x: x.to(xpu) if torch.is_tensor(x) else x, CALLS[op][0]()
    )
    counts = []
    for run in (outcome, without_direct_form):
        _C.reset_op_report()
        run(op, arguments)
        counts.append([row[:2] for row in _C.op_report()])
    assert counts[0] == counts[1]
    assert f"aten::{op}" in {name for name, _ in counts[0]}


@pytest.mark.parametrize("op", CALLS)
def test_a_capture_has_no_direct_form(op: str, xpu: torch.device) -> None:
    arguments = tree_map(
        lambda x: x.to(xpu) if torch.is_tensor(x) else x, CALLS[op][0]()
    )

    def captured(run: Callable[[str, Arguments], Any]) -> Any:
        try:
            graph = torch.xpu.XPUGraph()
            with torch.xpu.graph(graph):
                result = run(op, arguments)
        except RuntimeError as error:  # or a device without graphs
            return str(error).partition("\n")[0]
        if torch.is_tensor(result):
            graph.replay()
            torch.xpu.synchronize()
        return result

    same(captured(outcome), captured(without_direct_form))


def test_lazy_copies_are_read(xpu: torch.device) -> None:
    with xpurt.lazy_copies():
        x = torch.rand(3, 4)
        wanted = torch.cat((x, x))
        there = x.to(xpu)
        found = torch.cat((there, there))
        x.zero_()
        assert_close(found.cpu(), wanted, **EXACT)
        assert_close(there.cpu(), wanted[:3], **EXACT)


ZEROS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "plain": torch.zeros_like,
    "transposed": lambda x: torch.zeros_like(x.t()),
    "expanded": lambda x: torch.zeros_like(x[:1].expand(4, 4)),
    "a view": lambda x: torch.zeros_like(x[1:]),
    "another type": lambda x: torch.zeros_like(x, dtype=torch.int64),
    "another format": lambda x: torch.zeros_like(
        x.view(1, 2, 2, 3), memory_format=torch.channels_last
    ),
    "requires grad": lambda x: torch.zeros_like(x, requires_grad=True),
    "empty": lambda x: torch.zeros_like(x[:0]),
    "0-dim": lambda x: torch.zeros_like(x[0, 0]),
    "a conjugate": lambda x: torch.zeros_like(torch.complex(x, x).conj()),
}


@pytest.mark.parametrize("make", ZEROS.values(), ids=list(ZEROS))
def test_zeros_like(
    make: Callable[[torch.Tensor], torch.Tensor], xpu: torch.device
) -> None:
    x = torch.rand(3, 4)
    agree(make, x, grads=False, **EXACT)
    with torch.inference_mode():
        agree(make, x, grads=False, **EXACT)
    assert torch.zeros_like(x, device=xpu).device == xpu
    assert torch.zeros_like(x.to(xpu), device="cpu").device.type == "cpu"
    with pytest.raises(RuntimeError, match="pin"):
        torch.zeros_like(x.to(xpu), pin_memory=True)


CONVERSIONS = [torch.float32, HALF, torch.bfloat16, DOUBLE, INT, torch.int64]
CONVERSIONS += [torch.uint8, torch.bool, torch.complex64]


@pytest.mark.parametrize("to", CONVERSIONS, ids=str)
@pytest.mark.parametrize("source", CONVERSIONS, ids=str)
@pytest.mark.filterwarnings("ignore:Casting complex values to real")
def test_conversions(source: torch.dtype, to: torch.dtype, xpu: torch.device) -> None:
    x = torch.tensor([[0.0, 1.0, 2.5], [-1.5, 100.0, 0.25]]).to(source)
    if not to.is_signed:
        x = x.abs() if source is not torch.bool else x
    for form in (x, x.t(), x[:, ::2], x[0, 0], x[:0]):
        agree(lambda y: y.to(to), form, grads=False, **EXACT)
        agree(
            lambda a, b: a.copy_(b),
            torch.zeros(form.shape, dtype=to),
            form,
            grads=False,
        )

"""The ops that are registered with their own signature, each by itself."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.testing import assert_close
from torch.utils._pytree import tree_leaves, tree_map
from unboxed_samples import CALLS, call_of

from xpurt import _C
from xpurt.errors import FallbackError
from xpurt.mapping import current_placement
from xpurt.testing.oracle import agree, copied
from xpurt.torch_versions import series_of

OPS = [name.removeprefix("aten::") for name in _C.testing.unboxed_ops()]
# Only devices that PyTorch does not know have these: see test_convolutions.
CONVOLUTIONS = ["convolution_overrideable", "convolution_backward_overrideable"]
WRITING = [op for op in OPS if op.partition(".")[0].endswith("_")]
OUT = [op for op in OPS if op.endswith("out")]
NEW = [op for op in OPS if op not in WRITING + OUT + CONVOLUTIONS]
# The call's point is a sum in an order that depends on alignment.
EXACT = {"rtol": 0.0, "atol": 0.0}


def function(op: str) -> Callable[..., Any]:
    name, _, overload = op.partition(".")
    return getattr(getattr(torch.ops.aten, name), overload or "default")


def results(op: str) -> int:
    return len(function(op)._schema.returns)


def with_out(op: str, make: Callable[[torch.Tensor], torch.Tensor]) -> dict[str, Any]:
    """The `out` of a call: what `make` makes of the result."""
    args, kwargs = call_of(op)
    result = getattr(torch.ops.aten, op.partition(".")[0])(*args, **kwargs)
    assert isinstance(result, torch.Tensor)
    return {**kwargs, "out": make(result)}


def test_every_unboxed_op_has_a_call() -> None:
    assert set(OPS) == set(CALLS)
    assert len(OPS) == len(set(OPS)) >= 150


@pytest.mark.parametrize("op", WRITING + NEW)
def test_agrees_with_the_cpu(op: str, xpu: torch.device) -> None:
    args, kwargs = call_of(op)
    _C.reset_op_report()
    agree(function(op), *args, **kwargs, **EXACT)
    assert f"aten::{op}" in {row[0] for row in _C.op_report()}


def strided(value: Any) -> Any:
    """The same values, with gaps between them and before them."""
    if not isinstance(value, torch.Tensor) or value.dim() == 0:
        return value
    room = torch.zeros(*value.shape[:-1], 2 * value.shape[-1] + 1, dtype=value.dtype)
    return room[..., 1::2].copy_(value)


@pytest.mark.parametrize("op", WRITING + NEW)
def test_views_with_gaps(op: str, xpu: torch.device) -> None:
    args, kwargs = call_of(op)
    args = tree_map(strided, args)
    if op == "native_group_norm" and series_of(torch.__version__) == "2.13":
        with pytest.raises(RuntimeError, match="is_contiguous"):
            agree(function(op), *args, **kwargs)
    elif op == "native_group_norm_backward":
        # The CPU's kernel reads them as if there were no gaps, and out of bounds.
        wanted = function(op)(*tree_map(without_gaps, args))
        found = function(op)(*copied(args, xpu))
        for ours, theirs in zip(found, wanted, strict=True):
            torch.testing.assert_close(ours.cpu(), theirs)
    else:
        agree(function(op), *args, **kwargs)


def without_gaps(value: Any) -> Any:
    return value.contiguous() if isinstance(value, torch.Tensor) else value


@pytest.mark.parametrize("op", WRITING + NEW)
def test_in_inference_mode(op: str, xpu: torch.device) -> None:
    args, kwargs = call_of(op)
    with torch.inference_mode():
        agree(function(op), *args, **kwargs, grads=False, **EXACT)


def differentiable(value: Any) -> Any:
    if isinstance(value, torch.Tensor) and value.is_floating_point():
        return value.detach().clone().requires_grad_()
    return value


def has_gradients(op: str) -> bool:
    args, kwargs = call_of(op)
    try:
        result = function(op)(*tree_map(differentiable, args), **kwargs)
        leaves = [
            leaf for leaf in tree_leaves(result) if isinstance(leaf, torch.Tensor)
        ]
        graphs = [leaf for leaf in leaves if leaf.grad_fn is not None]
        torch.autograd.backward(graphs, [torch.ones_like(leaf) for leaf in graphs])
    except RuntimeError:
        return False
    return bool(graphs)


@pytest.mark.parametrize("op", [op for op in NEW if has_gradients(op)])
def test_gradients(op: str, xpu: torch.device) -> None:
    args, kwargs = call_of(op)
    agree(function(op), *tree_map(differentiable, args), **kwargs)


@pytest.mark.parametrize(
    "op", [op for op in WRITING if "foreach" not in op and "fused" not in op]
)
def test_a_leaf_is_not_written_to(op: str, xpu: torch.device) -> None:
    args, kwargs = call_of(op)
    with pytest.raises(RuntimeError, match="leaf"):
        agree(function(op), *tree_map(differentiable, args), **kwargs)


def test_convolutions(xpu: torch.device) -> None:
    x, weight, bias = torch.rand(1, 2, 5, 5), torch.rand(3, 2, 3, 3), torch.rand(3)
    _C.reset_op_report()
    for given in (bias, None):
        args = tree_map(differentiable, (x, weight, given))
        agree(torch.conv2d, *args, padding=1)
        agree(torch.conv2d, *tree_map(strided, args[:2]), stride=2)
    agree(torch.conv_transpose1d, *map(differentiable, (x[..., 0], weight[:2, :, 0])))
    counted = {row[0] for row in _C.op_report()}
    assert counted >= {f"aten::{op}" for op in CONVOLUTIONS}


@pytest.mark.parametrize("op", OUT)
def test_out(op: str, xpu: torch.device) -> None:
    args, _ = call_of(op)
    shapes: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
        "fits": torch.zeros_like,
        "is to grow": lambda result: result.new_empty(0),
        "has gaps": lambda result: strided(torch.zeros_like(result)),
        "is transposed": lambda result: (
            torch.zeros_like(result.t()).t()
            if result.dim() == 2
            else torch.zeros_like(result)
        ),
    }
    for make in shapes.values():
        kwargs = with_out(op, make)
        agree(function(op), *args, **kwargs, **EXACT)


@pytest.mark.parametrize("op", OUT)
def test_out_is_what_comes_back(op: str, xpu: torch.device) -> None:
    args, kwargs = copied((call_of(op)[0], with_out(op, torch.zeros_like)), xpu)
    assert function(op)(*args, **kwargs) is kwargs["out"]
    kwargs["out"] = torch.empty(0, dtype=kwargs["out"].dtype, device=xpu)
    assert function(op)(*args, **kwargs) is kwargs["out"]


@pytest.mark.parametrize("op", WRITING)
def test_versions_count_writes(op: str, xpu: torch.device) -> None:
    def versions(device: torch.device) -> Any:
        args, kwargs = copied(call_of(op), device)
        before = tree_map(version, args)
        function(op)(*args, **kwargs)
        return before, tree_map(version, args)

    def version(value: Any) -> Any:
        return value._version if isinstance(value, torch.Tensor) else None

    cpu, on_xpu = versions(torch.device("cpu")), versions(xpu)
    assert on_xpu[1] == cpu[1]


POINTWISE = """add.Tensor sub.Tensor mul.Tensor div.Tensor maximum minimum eq.Tensor
lt.Tensor addcmul addcdiv lerp.Tensor exp log sqrt neg relu sigmoid tanh silu
sigmoid_backward tanh_backward silu_backward add_.Tensor mul_.Tensor exp_ relu_"""


def operands(op: str, make: Callable[[], torch.Tensor]) -> list[torch.Tensor]:
    schema = function(op)._schema
    return [make() for a in schema.arguments if str(a.type) == "Tensor"]


LAYOUTS: dict[str, Callable[[], torch.Tensor]] = {
    "0-dim": lambda: torch.rand(()),
    "one element": lambda: torch.rand(1),
    "empty": lambda: torch.rand(0, 3),
    "transposed": lambda: torch.rand(4, 3).t(),
    "channels_last": lambda: torch.rand(2, 3, 4, 5).to(
        memory_format=torch.channels_last
    ),
    "offset": lambda: torch.rand(7)[2:],
    "1,025 elements": lambda: torch.rand(1025),
    "double": lambda: torch.rand(3, 4, dtype=torch.float64),
    "half": lambda: torch.rand(3, 4).half(),
    "bfloat16": lambda: torch.rand(3, 4).bfloat16(),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("op", POINTWISE.split())
def test_layouts(op: str, layout: str, xpu: torch.device) -> None:
    agree(function(op), *operands(op, LAYOUTS[layout]), **EXACT)


@pytest.mark.parametrize("dtype", [torch.int32, torch.bool, torch.uint8])
@pytest.mark.parametrize("op", ["add.Tensor", "mul.Tensor", "div.Tensor", "eq.Tensor"])
def test_types_are_promoted(op: str, dtype: torch.dtype, xpu: torch.device) -> None:
    numbers = torch.tensor([0, 1, 1]).to(dtype)
    others = torch.tensor([1, 1, 5])
    for other in (others, others.float(), others.half(), others.to(dtype)):
        agree(function(op), numbers, other, **EXACT)
        agree(function(op), other, numbers, **EXACT)


@pytest.mark.parametrize("number", [2, 0.1, -1e30, float("nan"), True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64])
def test_python_numbers(number: Any, dtype: torch.dtype, xpu: torch.device) -> None:
    for shape in ((3,), (), (2, 0)):
        tensor = torch.arange(math_size(shape)).reshape(shape).to(dtype)
        for op in (torch.add, torch.mul, torch.div):
            agree(op, tensor, number, **EXACT)
    if number is not True:
        agree(torch.sub, tensor, number, **EXACT)


def math_size(shape: tuple[int, ...]) -> int:
    return torch.Size(shape).numel()


def test_bool_is_no_number_to_subtract(xpu: torch.device) -> None:
    with pytest.raises(RuntimeError, match="bool tensor is not supported"):
        torch.rand(3, device=xpu).sub(True)


def test_operands_of_two_shapes(xpu: torch.device) -> None:
    for shapes in (((3, 4), (4,)), ((3, 1), (1, 4)), ((), (3,)), ((1,), (3,))):
        pair = [torch.rand(shape) for shape in shapes]
        for op in ("add.Tensor", "mul.Tensor", "lt.Tensor", "maximum"):
            agree(function(op), *pair, **EXACT)
    with pytest.raises(RuntimeError, match="output with shape"):
        torch.rand(3, device=xpu).add_(torch.rand(2, 3, device=xpu))


def test_strides_follow_the_operand_that_decides(xpu: torch.device) -> None:
    plain = torch.rand(2, 3, 4, 5)
    last = torch.rand(2, 3, 4, 5).to(memory_format=torch.channels_last)
    for pair in ((plain, last), (last, plain)):
        agree(torch.rsub, *pair)
        agree(torch.add, *pair)
        agree(torch.ops.aten.threshold_backward, *pair, 0.5)
        agree(torch.ops.aten.leaky_relu_backward, *pair, 0.1, False)


SHARED: dict[str, Callable[[torch.Tensor], object]] = {
    "itself": lambda x: x.mul_(x),
    "a view of itself": lambda x: x.add_(x.view(12).view(3, 4)),
    "out is an operand": lambda x: torch.add(x, x, out=x),
    "addcmul": lambda x: x.addcmul_(x, x),
    "lerp": lambda x: x.lerp_(x, x),
    "rows": lambda x: x[0].add_(x[1]).mul_(x[2]),
    "rows joined": lambda x: torch.cat((x[0], x[2])),
    "rows into a row": lambda x: torch.cat((x[0, :2], x[2, :2]), out=x[1]),
}


@pytest.mark.parametrize("change", SHARED.values(), ids=list(SHARED))
def test_shared_memory(
    change: Callable[[torch.Tensor], object], xpu: torch.device
) -> None:
    agree(change, torch.rand(3, 4), **EXACT)


OVERLAPPING: dict[str, Callable[[torch.Tensor], object]] = {
    "copy": lambda x: x.view(12)[1:].copy_(x.view(12)[:-1]),
    "a shifted view": lambda x: x.view(12)[1:].add_(x.view(12)[:-1]),
    "expanded": lambda x: x[:1].expand(3, 4).add_(1),
    "out overlaps": lambda x: torch.add(x[:2], 1, out=x[1:]),
}


@pytest.mark.parametrize("change", OVERLAPPING.values(), ids=list(OVERLAPPING))
def test_overlapping_memory_is_refused(
    change: Callable[[torch.Tensor], object], xpu: torch.device
) -> None:
    with pytest.raises(RuntimeError, match=r"overlap|single memory location"):
        agree(change, torch.rand(3, 4))


MIXED: dict[str, Callable[[torch.Tensor, torch.Tensor], object]] = {
    "add": lambda x, c: x + c,
    "reversed": lambda x, c: c + x,
    "mul_": lambda x, c: x.mul_(c),
    "cpu mul_": lambda x, c: c.mul_(x),
    "out": lambda x, c: torch.mul(x, x, out=c),
    "relu gradient": lambda x, c: torch.ops.aten.threshold_backward(x, c, 0),
    "addcmul": lambda x, c: x.addcmul(x, c),
    "lerp": lambda x, c: torch.lerp(x, x, c),
    "cat": lambda x, c: torch.cat((x, c)),
    "stack": lambda x, c: torch.stack((x, c)),
    "where": lambda x, c: torch.where(x > 0, x, c),
    "mm": lambda x, c: x[None].mm(c[:, None]),
    "layer_norm": lambda x, c: torch.layer_norm(x, (3,), c),
}


@pytest.mark.parametrize("op", MIXED.values(), ids=list(MIXED))
def test_a_cpu_tensor_is_refused(
    op: Callable[[torch.Tensor, torch.Tensor], object], xpu: torch.device
) -> None:
    with pytest.raises(RuntimeError, match=r"same device.*xpu:0 and cpu"):
        op(torch.ones(3, device=xpu), torch.ones(3))


def test_cpu_scalars_are_operands(xpu: torch.device) -> None:
    tensor, scalar = torch.rand(3), torch.tensor(2.0)
    there = tensor.to(xpu)
    for op in (torch.add, torch.mul, torch.maximum, torch.eq):
        assert_close(op(there, scalar).cpu(), op(tensor, scalar), rtol=0, atol=0)
        assert_close(op(scalar, there).cpu(), op(scalar, tensor), rtol=0, atol=0)
    assert_close(
        torch.lerp(there, there, scalar).cpu(), torch.lerp(tensor, tensor, scalar)
    )
    with pytest.raises(RuntimeError, match="same device"):
        scalar.add_(there[0])


def test_undefined_operands(xpu: torch.device) -> None:
    x = torch.rand(2, 3, 4)
    agree(torch.ops.aten.native_layer_norm, x, [4], None, None, 1e-5)
    agree(
        torch.ops.aten.native_batch_norm, x, *[None] * 4, True, 0.1, 1e-5, grads=False
    )
    agree(torch.clamp, x, None, torch.tensor(0.5).expand(4).clone())


def test_batch_norm_writes_its_statistics(xpu: torch.device) -> None:
    args = (torch.rand(5, 4), None, None, torch.zeros(4), torch.ones(4))
    agree(torch.ops.aten.native_batch_norm, *args, True, 0.5, 1e-5, grads=False)


def test_what_a_kernel_returns_of_its_operand(xpu: torch.device) -> None:
    """A result that is the operand, or shares its memory, does so on xpu."""
    x = torch.rand(3, 4, device=xpu)
    assert x.relu_() is x
    for view in (x.t(), x[1:], x.reshape(4, 3), x.contiguous(), x.expand(2, 3, 4)):
        assert view.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
        assert view.device == xpu


def test_threads_do_not_share_views(xpu: torch.device) -> None:
    from concurrent.futures import ThreadPoolExecutor

    def work(seed: int) -> bool:
        x = torch.arange(100.0) + seed
        y = x.to(xpu)
        for _ in range(200):
            total = torch.cat((y, y)).sum(0)
            if total.item() != 2 * x.sum().item():
                return False
        return True

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(4)))


def test_an_error_leaves_nothing_behind(xpu: torch.device) -> None:
    x = torch.rand(3, 4, device=xpu)
    before = _C.live_memory()
    for _ in range(20):
        with pytest.raises(RuntimeError):
            x.mm(x)
        with pytest.raises(RuntimeError):
            torch.cat((x, x.t()))
    assert _C.live_memory() == before
    agree(torch.mm, torch.rand(3, 4), torch.rand(4, 3))


def test_host_memcpy(xpu: torch.device) -> None:
    for x in (torch.rand(3, 4), torch.rand(0), torch.rand(()), torch.rand(4, 3).t()):
        for dtype in (torch.float32, torch.int8, torch.bool, torch.complex64):
            agree(torch.zeros_like, x.to(dtype))
            agree(torch.clone, x.to(dtype))
            agree(lambda a, b: a.copy_(b), torch.zeros_like(x), x.to(dtype).real)
    agree(lambda x: x[:, 1].zero_(), torch.rand(3, 4))
    agree(lambda x: x.conj().copy_(x + 1), torch.rand(3, dtype=torch.complex64))


def test_memory_of_a_view_that_python_keeps(xpu: torch.device) -> None:
    """A CPU kernel in Python may keep what it is given, if that is no copy."""
    kept: list[torch.Tensor] = []
    library = torch.library.Library("xpurt_test_unboxed", "DEF")
    try:
        library.define("keep(Tensor x) -> Tensor")
        library.impl("keep", lambda x: (kept.append(x), x + 1)[1], "CPU")
        x = torch.arange(3.0, device=xpu)
        if not any(d.host_accessible for d in current_placement().ordinals[0]):
            with pytest.raises(FallbackError, match="kept argument x"):
                torch.ops.xpurt_test_unboxed.keep(x)
            return
        torch.ops.xpurt_test_unboxed.keep(x)
        del x
        assert torch.full((3,), 7.0, device=xpu).tolist() == [7, 7, 7]
        assert kept[0].tolist() == [0, 1, 2]
    finally:
        kept.clear()
        library._destroy()

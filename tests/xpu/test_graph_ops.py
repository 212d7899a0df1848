"""PyTorch's database of operators inside captures: an op is in the graph, or refused.

What is computed once, during the capture, and missing in the replays would be a wrong
number in silence. So each op is captured over some inputs, its results are overwritten,
and a replay over other inputs has to give what an eager run over those gives.
"""

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils import _pytree

QUICK = 24  # of about 600

# They read uninitialized memory, or compile for CUDA.
LEFT_OUT = ("empty", "empty_like", "empty_permuted", "empty_strided", "new_empty",
            "new_empty_strided", "resize_", "resize_as_", "jiterator")  # fmt: skip

OPS = [
    op
    for op in op_db
    if torch.float32 in op.dtypes and not op.name.startswith(LEFT_OUT)
]


def chosen() -> list[Any]:
    quick = {id(op) for op in random.Random(15).sample(OPS, QUICK)}
    return [
        pytest.param(
            op,
            id=op.formatted_name,
            marks=() if id(op) in quick else pytest.mark.slow,
        )
        for op in OPS
    ]


def tensors_of(tree: Any) -> list[torch.Tensor]:
    leaves: list[Any] = _pytree.tree_leaves(tree)
    return [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]


def on_device(tree: Any, device: torch.device) -> Any:
    def move(leaf: Any) -> Any:
        if isinstance(leaf, torch.Tensor):
            return leaf.detach().to(device).requires_grad_(leaf.requires_grad)
        if isinstance(leaf, (str, torch.device)) and str(leaf) == "cpu":
            return device
        return leaf

    return _pytree.tree_map(move, tree)


def first_sample(op: Any) -> Any:
    samples: Iterator[Any] = op.sample_inputs(
        "cpu", torch.float32, requires_grad=op.supports_autograd
    )
    return next(
        (s for s in samples if any(t.numel() > 1 for t in tensors_of(s.input))), None
    )


def work_of(op: Any, tree: Any) -> Callable[[], list[torch.Tensor]]:
    """The op, and its gradients where it has some."""

    def work() -> list[torch.Tensor]:
        given, args, kwargs = tree
        results = tensors_of(op(given, *args, **kwargs))
        wanted = [t for t in tensors_of(tree) if t.requires_grad]
        total = [t for t in results if t.requires_grad and t.is_floating_point()]
        if not wanted or not total:
            return [t.detach() for t in results]
        gradients = torch.autograd.grad(
            total, wanted, [torch.ones_like(t) for t in total], allow_unused=True
        )
        found = [g for g in gradients if g is not None]
        return [t.detach() for t in results + found]

    return work


@pytest.mark.parametrize("op", chosen())
def test_a_replay_computes_what_an_eager_run_would(op: Any, cpu: torch.device) -> None:
    torch.manual_seed(3)
    sample = first_sample(op)
    if sample is None:
        pytest.skip("it takes no tensor of several elements")
    tree = on_device((sample.input, sample.args, sample.kwargs), cpu)
    if not all(t.layout == torch.strided for t in tensors_of(tree)):
        pytest.skip("a sparse tensor")
    work = work_of(op, tree)
    inputs = [t for t in tensors_of(tree) if t.is_floating_point()]
    captured_from = [t.detach().clone() for t in inputs]

    def set_inputs(factor: float) -> None:
        with torch.no_grad():
            for tensor, original in zip(inputs, captured_from, strict=True):
                tensor.copy_(original * factor)

    set_inputs(0.5)
    torch.xpu.manual_seed(4)
    try:
        expected = [t.cpu() for t in work()]
    except (RuntimeError, NotImplementedError) as error:
        pytest.skip(f"fails eagerly, too: {error}")
    set_inputs(1)
    graph = torch.xpu.XPUGraph()
    try:
        with torch.xpu.graph(graph):
            results = work()
    except RuntimeError as error:
        assert "cannot be captured into an XPU graph" in str(error)  # noqa: PT017
        with pytest.raises(RuntimeError, match="capture was invalidated"):
            graph.replay()
        return
    for result in results:
        # Not of an expanded one, all of whose elements are one.
        lazy = result.is_conj() or result.is_neg() or result._is_zerotensor()
        if 0 not in result.stride() and not lazy:
            result.fill_(17)
    set_inputs(0.5)
    torch.xpu.manual_seed(4)
    graph.replay()
    found = [t.cpu() for t in results]
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-4, equal_nan=True)

"""Training steps of PyTorch programs, traced without memory."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.func import functional_call
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry

from xpurt_tools.workloads.models import ResNet18, Transformer
from xpurt_tools.workloads.workload import Task, Workload

# For pointwise ops and reductions: about one operation per element that they touch.
_FLOPS_PER_ELEMENT = 1.0

_RUN_NOTHING = {torch.ops.aten._unsafe_view, torch.ops.aten.empty}


def resnet_step(batch: int) -> Workload:
    """Forward, backward and update of ResNet-18 on images of 224 x 224."""
    with torch.device("meta"):
        model = ResNet18()
        images = torch.empty(batch, 3, 224, 224)
        classes = torch.empty(batch, dtype=torch.long)
    return training_step("resnet", model, images, classes)


def transformer_step(layers: int, width: int, batch: int, length: int) -> Workload:
    """Forward, backward and update of a transformer with heads of 64 numbers."""
    with torch.device("meta"):
        model = Transformer(layers, width, width // 64, words=16_384)
        tokens = torch.empty(batch, length, dtype=torch.long)
        following = torch.empty(batch, length, dtype=torch.long)
    return training_step("transformer", model, tokens, following)


def training_step(
    name: str, model: nn.Module, inputs: Tensor, classes: Tensor
) -> Workload:
    """One step of gradient descent on the cross entropy; everything on meta."""

    def step(weights: dict[str, Tensor], inputs: Tensor, classes: Tensor) -> Any:
        scores = functional_call(model, weights, (inputs,))
        loss = nn.functional.cross_entropy(scores.flatten(0, -2), classes.flatten())
        slopes = torch.autograd.grad(loss, list(weights.values()))
        pairs = zip(weights.values(), slopes, strict=True)
        return [weight - 0.1 * slope for weight, slope in pairs]

    return traced(name, step, dict(model.named_parameters()), inputs, classes)


def traced(name: str, function: Callable[..., Any], *arguments: Any) -> Workload:
    """The aten ops of a call of `function`, as tasks. Tensors on meta are enough."""
    return from_fx(name, make_fx(function)(*arguments).graph)


def from_fx(name: str, graph: fx.Graph) -> Workload:
    """The aten ops of a graph whose nodes have values of the right shapes in `meta`, as
    after tracing.

    Views are no tasks: a reader of a view takes its bytes from the op that made the
    view's base. Inputs are on every device.
    """
    work = Workload(name)
    # For a node: the task that made its result, or the memory that it shares.
    maker: dict[fx.Node, int] = {}
    for node in graph.nodes:
        if node.op != "call_function" or "val" not in node.meta:
            continue
        inputs = [each for each in node.all_input_nodes if each in maker]
        if _is_view(node):
            if inputs:
                maker[node] = maker[inputs[0]]
            continue
        taken: dict[int, float] = {}
        for each in inputs:
            taken[maker[each]] = taken.get(maker[each], 0.0) + _bytes(each)
        maker[node] = len(work.tasks)
        work.tasks.append(_task(node))
        work.edges += [(task, maker[node], size) for task, size in taken.items()]
    return work


def _is_view(node: fx.Node) -> bool:
    if not isinstance(node.target, torch._ops.OpOverload):
        return True  # getitem of an op with several results
    if node.target.overloadpacket in _RUN_NOTHING:
        return True
    returns = node.target._schema.returns
    shares = [
        each.alias_info is not None and not each.alias_info.is_write for each in returns
    ]
    return node.target.is_view or (bool(shares) and all(shares))


def _task(node: fx.Node) -> Task:
    made = _bytes(node)
    read = sum(_bytes(each) for each in node.all_input_nodes)
    return Task(node.name, _flops(node, (made + read) / 4), made + read, made)


def _flops(node: fx.Node, elements: float) -> float:
    assert isinstance(node.target, torch._ops.OpOverload)
    count = flop_registry.get(node.target.overloadpacket)
    if count is None:
        return _FLOPS_PER_ELEMENT * elements
    values = fx.map_arg((node.args, node.kwargs), lambda each: each.meta["val"])
    return float(count(*values[0], **values[1], out_val=node.meta["val"]))


def _bytes(node: fx.Node) -> float:
    tensors = (each for each in tree_leaves(node.meta.get("val")) if _is_tensor(each))
    return float(sum(each.numel() * each.element_size() for each in tensors))


def _is_tensor(value: object) -> bool:
    return isinstance(value, Tensor)

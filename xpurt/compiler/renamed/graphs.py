"""torch.compile on renamed devices, as prototypes.

Note [Graphs of renamed devices]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
A prototype's tensors are those of the CPU, or of xpu, under the prototype's name. So its
graph becomes one of the device behind, in the places where a graph of xpu tensors becomes
one for the host (see Note [Graphs for the host]), and one step before that: a graph of a
prototype over xpu becomes one of xpu, which then has xpu's forms. Until then tensors are
on the prototype, so that the vendor's derivatives and autocast are traced.

An op that the vendor has a kernel for stays one op, since it is not decomposed on this
device, and the compiled graph calls it on the prototype's tensors: see Note [Ops of xpu in code
for the host]. Random ops draw from the prototype's generator in the same way.

The compiled graph is called with tensors of the device behind, made as for one op: see
Note [Exchanged calls]. Where the host can't read the memory, the whole graph gets copies
once, not each op.

Inductor's cache on disk has the graph of the device behind, which is complete. That of
AOTAutograd is off: its key knows nothing of the vendor's kernels and derivatives.
"""

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import torch
from torch import Tensor
from torch._functorch import config as functorch_config
from torch._inductor import config
from torch._inductor.virtualized import V
from torch._ops import OpOverload
from torch._subclasses.fake_tensor import FakeTensor, unset_fake_temporarily
from torch.fx import GraphModule, Node
from torch.utils import _pytree as pytree

from xpurt import _C
from xpurt.compiler import (
    device_ops,
    host_code,
    host_graph,
    op_by_op,
    random_ops,
)
from xpurt.compiler.device_only import ops as device_only
from xpurt.compiler.renamed import devices, vendor_compiler
from xpurt.compiler.renamed.devices import RenamedDevice
from xpurt.compiler.warn_once import warn_once


def define(compile_fx: ModuleType) -> None:
    """Changes Inductor, around what has been changed for xpu."""
    replaced = {
        "compile_fx": _compile,
        "partition_fn": _partition,
        "compile_fx_forward": _convert_before,
        "compile_fx_backward": _convert_before,
        "_compile_fx_inner": _compile_inner,
    }
    for name, replacement in replaced.items():
        setattr(compile_fx, name, replacement(getattr(compile_fx, name)))


def _compile(before: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(before)
    def compile_fx(
        model: GraphModule, inputs: Sequence[Any], *args: Any, **kwargs: Any
    ) -> Any:
        found = _devices_in(model, inputs)
        if not found:
            return before(model, inputs, *args, **kwargs)
        first = min(found, key=str)
        if V.aot_compilation:
            raise RuntimeError(
                f"AOTInductor makes no package for {first.type}. Move the model and its "
                "inputs to the CPU before torch.export.export."
            )
        op_by_op.keep_fullgraph()
        device = _known(first)
        if reason := _why_op_by_op(found, device):
            op_by_op.announce(reason)
            from torch._dynamo.backends.debugging import aot_eager

            return aot_eager(model, list(inputs))
        kernels = device.kernels()
        function = device.compiler()
        if function is not None:
            core = torch._decomp.core_aten_decompositions()
            table = _decompositions(device.type, kernels, core)
            with _whole(device.type, kernels):
                return vendor_compiler.compile_graphs(
                    device.type, function, table, model, inputs
                )
        if config.freezing:
            warn_once(f"torch.compile freezes no parameters on {device.type}")
        table = _decompositions(
            device.type, kernels, kwargs.pop("decompositions", None)
        )
        with (
            functorch_config.patch(enable_autograd_cache=False),
            config.patch(freezing=False),
            _whole(device.type, kernels),
        ):
            return before(model, inputs, *args, **kwargs, decompositions=table)

    return compile_fx


def _devices_in(graph: Any, inputs: Sequence[Any]) -> set[torch.device]:
    """The renamed devices of a graph, with their indices."""
    if not isinstance(graph, GraphModule):
        return set()
    return {
        torch.device(each.type, devices.index_of(each))
        for each in host_graph.devices_in(graph, inputs)
        if devices.find(each.type)
    }


def _known(device: torch.device) -> RenamedDevice:
    found = devices.find(device.type)
    assert found is not None
    return found


def _why_op_by_op(devices: set[torch.device], device: RenamedDevice) -> str:
    if len(devices) > 1:
        names = " and ".join(sorted(map(str, devices)))
        return f"tensors of {names} are in one graph"
    return host_code.why_none() if device.behind == "cpu" else ""


def _decompositions(
    type: str, kernels: frozenset[OpOverload], given: dict[Any, Any] | None
) -> dict[Any, Any]:
    """On the device, those of ops that the vendor has no kernel for. Inductor's of layer
    norms computes on all devices but mtia."""
    from torch._inductor import decomposition

    table = decomposition.select_decomp_table() if given is None else given
    of_norms = {
        torch.ops.aten.native_layer_norm.default: decomposition.decomp_native_layer_norm
    }
    table = {**table, **of_norms}
    # Inductor's asks which code is generated for the device type, and there is none.
    table.pop(torch.ops.aten.masked_scatter.default, None)
    return {
        op: functools.partial(_decompose, type, each) if op in kernels else each
        for op, each in table.items()
    }


@contextmanager
def _whole(type: str, kernels: frozenset[OpOverload]) -> Iterator[None]:
    """Within it, ops that PyTorch always makes of others, as `linear`, are traced as one
    op on the device, if the vendor has kernels for them."""
    composite = [op for op in kernels if op._can_decompose()]
    for op in composite:
        made = functools.partial(_decompose, type, op.decompose)
        setattr(op, "decompose", made)  # noqa: B010
    try:
        yield
    finally:
        for op in composite:
            delattr(op, "decompose")


def _decompose(type: str, before: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    values = pytree.tree_leaves((args, kwargs))
    is_on = any(
        each.device.type == type if isinstance(each, Tensor) else _names(each, type)
        for each in values
    )
    return NotImplemented if is_on else before(*args, **kwargs)


def _names(value: Any, type: str) -> bool:
    return isinstance(value, torch.device) and value.type == type


def _convert_before(before: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(before)
    def compile(
        graph: GraphModule, inputs: Sequence[Any], *args: Any, **kwargs: Any
    ) -> Any:
        return before(graph, _to_behind(graph, inputs), *args, **kwargs)

    return compile


def _partition(before: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(before)
    def partition_fn(joint: GraphModule, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        flat, form = pytree.tree_flatten(inputs)
        if flat:
            inputs = pytree.tree_unflatten(_to_behind(joint, flat), form)
        forward, backward = before(joint, inputs, *args, **kwargs)
        home = _home_of(joint)
        if home is not None:
            host_graph.divide_home(home, forward, backward)
        return forward, backward

    return partition_fn


def _home_of(graph: GraphModule) -> host_graph.Home | None:
    homes = host_graph.homes_of(graph)
    return next((each for each in homes if each.type != "xpu"), None)


def _to_behind(graph: GraphModule, inputs: Sequence[Any]) -> list[Any]:
    """Changes a graph of a renamed device, and returns its inputs there."""
    if _home_of(graph) is None:
        found = _devices_in(graph, inputs)
        if len(found) != 1:
            return list(inputs)
        (device,) = found
        known = _known(device)
        change = host_graph.Change(
            _tensor_behind,
            _tensor_behind,
            _device_behind,
            functools.partial(_target, device.type, known.kernels()),
        )
        host_graph.change(graph, device, change)
    return [_tensor_behind(each) for each in inputs]


def _tensor_behind(value: Any) -> Any:
    if not isinstance(value, Tensor):
        return value
    there = devices.behind(value.device)
    if there == value.device:
        return value
    if isinstance(value, FakeTensor):
        return device_ops.faked(value, there)
    with unset_fake_temporarily():
        return value.detach().to(there)


def _device_behind(value: Any) -> Any:
    return devices.behind(value) if isinstance(value, torch.device) else value


def _target(type: str, kernels: frozenset[OpOverload], node: Node) -> Any:
    """The op that computes a node of the graph there."""
    op = node.target
    if not isinstance(op, OpOverload) or not _is_on(type, node):
        return _device_behind(op)
    if op not in kernels and op not in device_only.found():
        return op
    made = ops_of(type).define_for(op)
    device_ops.call(made)
    return made


def _is_on(type: str, node: Node) -> bool:
    """Whether the dispatcher calls the kernel of the device type for a node. Its operands
    have been changed before it."""
    values = pytree.tree_leaves(node.meta.get("val"))
    results = [each for each in values if isinstance(each, Tensor)]
    if results:
        return any(each.device.type == type for each in results)
    return any(
        isinstance(each.meta.get("val"), Tensor) and not host_graph.was_on_cpu(each)
        for each in node.all_input_nodes
    )


@functools.cache
def ops_of(type: str) -> device_ops.DeviceOps:
    """The ops that graphs of the device behind call on the device."""
    device = devices.find(type)
    assert device is not None

    def to_device(tensor: Tensor, there: torch.device) -> Tensor:
        behind = tensor.to(devices.behind(there))
        return device.to_own(behind, devices.index_of(there))

    def from_device(tensor: Tensor, caller: torch.device) -> Tensor:
        if tensor.device.type == type:
            tensor = device.to_behind(tensor)
        is_host_code = caller.type == "cpu" and tensor.device.type == "xpu"
        return _C.share_with_cpu(tensor) if is_host_code else tensor

    made = device_ops.DeviceOps(
        f"xpurt_on_{type}",
        lambda: torch.device(type, device.current()),
        to_device,
        from_device,
    )
    random_ops.define(made.define_for)
    return made


def _draw(type: str, op: Any) -> Any:
    """The op that draws from the device's generator; any other op itself."""
    is_random = isinstance(op, OpOverload) and op in random_ops.found()
    return ops_of(type).of_host(op) if is_random else op


def _compile_inner(before: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(before)
    def compile_fx_inner(
        graph: GraphModule, inputs: Sequence[Any], *args: Any, **kwargs: Any
    ) -> Any:
        home = _home_of(graph)
        if home is None:
            return before(graph, inputs, *args, **kwargs)
        random_ops.replace(graph, functools.partial(_draw, home.type))
        written = host_graph.written_inputs(graph)
        compiled = before(graph, inputs, *args, **kwargs)
        is_compiled = hasattr(compiled, "current_callable")
        if is_compiled:
            written = sorted(compiled.xpurt_donated.union(compiled.mutated_input_idxs))
        code = _known(home.device).make_code(
            compiled.current_callable if is_compiled else compiled,
            home.index,
            written,
            list(home.on_device),
        )
        if not is_compiled:
            return host_code.boxed(code)
        compiled.current_callable = code
        return compiled

    return compile_fx_inner

"""Makes the graph of a compiled function on xpu one on the CPU.

Note [Graphs for the host]
~~~~~~~~~~~~~~~~~~~~~~~~~~
The host reads and writes the memory of the CPU device, so Inductor's code for CPU
tensors can compute on it. Inductor asks for devices in many places: of nodes, of inputs,
of constants. So the graph is changed as a whole, after AOTAutograd has traced it, and
before Inductor's first pass. Until then tensors are on xpu, so that autocast, gradients
and decisions of the program are those of xpu. From then on nothing in the graph is.

The output node keeps which outputs have to become xpu tensors, in its `meta`: passes
replace other nodes.

Graphs of renamed devices are changed by the same functions: see Note [Graphs of renamed
devices].
"""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import torch
from torch._inductor.virtualized import V
from torch._ops import OpOverload
from torch._subclasses.fake_tensor import FakeTensor, unset_fake_temporarily
from torch.fx import GraphModule, Node
from torch.utils import _pytree as pytree

from xpurt import _C
from xpurt.compiler import device_ops
from xpurt.compiler.device_only import ops as device_only
from xpurt.compiler.renamed import devices

_HOME: Final = "xpurt_home "  # and the device type
_NAMES: Final = "xpurt_names "
_WAS_ON_CPU: Final = "xpurt_was_on_cpu"
_OUR_KEYS: Final = {_HOME + "xpu", _NAMES + "xpu"}
_CPU: Final = torch.device("cpu")
_COLLECTIVES: Final = ("_c10d_functional", "_c10d_functional_autograd")


@dataclass(frozen=True, slots=True)
class Home:
    """Where the tensors of a graph for the host were before.

    index: the ordinal of the xpu tensors.
    on_device: for each output, whether it was on xpu.
    returned: for each output, the position of the input that it may be, or -1.
    type: the device type, "xpu" or a renamed one.
    """

    index: int
    on_device: tuple[bool, ...]
    returned: tuple[int, ...] = ()
    type: str = "xpu"

    @property
    def device(self) -> torch.device:
        return torch.device(self.type, self.index)


@dataclass(frozen=True, slots=True)
class Change:
    """How a graph of a device becomes one of another device.

    tensor, constant: the tensor there in place of one of the device; of a constant, too.
    argument: the same for a device or an op. Each returns other values as they are.
    target: what a node calls then; by default argument() of its target.
    """

    tensor: Callable[[Any], Any]
    constant: Callable[[Any], Any]
    argument: Callable[[Any], Any]
    target: Callable[[Node], Any] | None = None


def is_for_host(module: Any) -> bool:
    """Whether Inductor lowers a graph that was changed."""
    return isinstance(module, GraphModule) and bool(homes_of(module))


def homes_of(graph: GraphModule) -> list[Home]:
    """The homes of a graph that was changed once or more, the last one first."""
    keys = [each for each in graph.graph.output_node().meta if each.startswith(_HOME)]
    homes = [home_of(graph, key.removeprefix(_HOME)) for key in reversed(keys)]
    return [each for each in homes if each is not None]


def home_of(graph: GraphModule, type: str = "xpu") -> Home | None:
    """Where the outputs of a graph for the host belong; None for any other graph. type:
    the device type that the graph was changed from."""
    output = graph.graph.output_node()
    found: Home | None = output.meta.get(_HOME + type)
    if found is None:
        return None
    outputs = _outputs(output)
    if len(outputs) != len(found.on_device):
        # Tokens that order effects are outputs only until a graph has been divided.
        on_device = dict(zip(output.meta[_NAMES + type], found.on_device, strict=True))
        found = replace(
            found, on_device=tuple(on_device[_name(each)] for each in outputs)
        )
    inputs = {
        node: i for i, node in enumerate(graph.graph.find_nodes(op="placeholder"))
    }
    returned = tuple(inputs.get(each, -1) for each in outputs)
    return replace(found, returned=returned)


def ordinals_in(graph: GraphModule, inputs: Sequence[Any]) -> set[int]:
    """The xpu ordinals of the tensors and the device arguments of a graph, and those
    behind renamed devices."""
    behind = map(devices.behind, devices_in(graph, inputs))
    return {_index(device) for device in behind if device.type == "xpu"}


def devices_in(graph: GraphModule, inputs: Sequence[Any]) -> set[torch.device]:
    """The devices of the tensors and the device arguments of a graph."""
    found: set[torch.device] = set()

    def add(value: Any) -> None:
        device = value.device if isinstance(value, torch.Tensor) else value
        if isinstance(device, torch.device):
            found.add(device)

    for value in inputs:
        add(value)
    for module in _graph_modules(graph):
        for node in module.graph.nodes:
            pytree.tree_map_(add, (node.args, node.kwargs, _values(node)))
            if node.op == "get_attr":
                add(_attribute(module, node))
    return found


def group_without_cpu(graph: GraphModule) -> str:
    """The name of a process group that a graph has collectives of, and that has no
    backend for CPU tensors; "" if there is none."""
    for module in _graph_modules(graph):
        for node in module.graph.nodes:
            if getattr(node.target, "namespace", "") not in _COLLECTIVES:
                continue
            names: list[Any] = [each for each in node.args if isinstance(each, str)]
            for name in names:
                try:
                    group = torch._C._distributed_c10d._resolve_process_group(name)
                except RuntimeError:  # the name of a reduction
                    continue
                if _CPU not in group._device_types:
                    return str(name)
    return ""


def written_inputs(graph: GraphModule) -> list[int]:
    """The positions of the inputs that a functional graph writes to, ascending: it
    copies their new values to them at its end."""
    inputs = graph.graph.find_nodes(op="placeholder")
    copies = graph.graph.find_nodes(
        op="call_function", target=torch.ops.aten.copy_.default
    )
    written = {node.args[0] for node in copies}
    return [i for i, node in enumerate(inputs) if node in written]


def to_host(graph: GraphModule, index: int) -> None:
    """Changes a graph of tensors on xpu:index and on the CPU to one on the CPU alone."""
    change(graph, torch.device("xpu", index), Change(on_host, _constant, _for_host))


def change(graph: GraphModule, device: torch.device, by: Change) -> None:
    """Changes a graph of tensors on a device and on the CPU. The device is the home of
    its outputs."""
    output = graph.graph.output_node()
    on_device = tuple(_is_on(each, device.type) for each in _outputs(output))
    seen: dict[int, Any] = {}
    for module in _graph_modules(graph):
        for node in module.graph.nodes:
            _convert(module, node, seen, by)
        module.recompile()
    # AOTInductor keeps first values of the buffers there.
    graph.meta.update({key: by.constant(value) for key, value in graph.meta.items()})
    _set_home(output, Home(device.index, on_device, type=device.type))


def on_device_again(graph: GraphModule, home: Home) -> GraphModule | None:
    """A copy of a graph for the host, as a graph of xpu tensors; None if it can't be one:
    it has CPU tensors, constants, or ops that other devices do not have."""
    outputs = zip(_outputs(graph.graph.output_node()), home.on_device, strict=True)
    stays = any(_is_tensor(each) and not on_device for each, on_device in outputs)
    if stays or len(_graph_modules(graph)) > 1:
        return None
    for node in graph.graph.nodes:
        if _WAS_ON_CPU in node.meta or not _is_portable(node):
            return None
    made = GraphModule(graph, copy.deepcopy(graph.graph))
    made.meta = dict(graph.meta)
    device = home.device

    def moved(value: Any) -> Any:
        return device if isinstance(value, torch.device) else value

    for node in made.graph.nodes:
        if node.op == "output":
            node.meta = {key: node.meta[key] for key in node.meta.keys() - _OUR_KEYS}
            continue
        node.target = device_ops.of_device(node.target)
        node.args, node.kwargs = pytree.tree_map(moved, (node.args, node.kwargs))
        if "val" in node.meta:
            found = pytree.tree_map(
                lambda each: device_ops.faked(each, device), node.meta["val"]
            )
            node.meta["val"] = found
    made.recompile()
    return made


def is_on_device(graph: GraphModule) -> bool:
    """Whether a graph before to_host() has xpu tensors alone, and no random numbers."""
    nodes = [node for node in graph.graph.nodes if node.op != "output"]
    values = pytree.tree_leaves([_values(node) for node in nodes])
    tensors = [each for each in values if isinstance(each, torch.Tensor)]
    return all(each.device.type == "xpu" for each in tensors) and not any(
        _is_random(node) for node in nodes
    )


def on_device_inputs(inputs: Sequence[Any], home: Home) -> list[Any]:
    """The inputs that the graph of on_device_again() is compiled with."""
    return [device_ops.faked(each, home.device) for each in inputs]


def results_on_device(results: Sequence[Any], home: Home) -> list[Any]:
    """The results of a graph for the host, without memory, where the program has
    them."""
    return [
        device_ops.faked(each, home.device) if on_device else each
        for each, on_device in zip(results, home.on_device, strict=True)
    ]


def _is_portable(node: Node) -> bool:
    if node.op != "call_function":
        return node.op in ("placeholder", "output")
    namespace = getattr(device_ops.of_device(node.target), "namespace", "")
    is_python = namespace == "" and not isinstance(node.target, torch._ops.OpOverload)
    return (is_python or namespace in ("aten", "prims")) and not (
        "_for_cpu" in node.name or _is_random(node)
    )


def _is_random(node: Node) -> bool:
    if torch.Tag.nondeterministic_seeded not in getattr(node.target, "tags", ()):
        return False
    # Attention draws numbers only to drop scores.
    for i, each in enumerate(node.target._schema.arguments):  # type: ignore[union-attr]
        if each.name == "dropout_p":
            given = node.args[i] if i < len(node.args) else each.default_value
            return bool(node.kwargs.get(each.name, given) != 0)
    return True


def on_host(value: Any) -> Any:
    """The CPU tensor in place of an xpu tensor: without memory for a compiler's fake
    tensor, over the same bytes for any other. Other values are returned as they are.
    """
    if not isinstance(value, torch.Tensor) or value.device.type != "xpu":
        return value
    if isinstance(value, FakeTensor):
        return device_ops.faked(value, _CPU)
    with unset_fake_temporarily():
        return _C.share_with_cpu(value.detach())


def divide_home(joint: Home, forward: GraphModule, backward: GraphModule) -> None:
    """Gives the two parts of a joint graph their homes.

    The forward graph returns its results and the values that are saved for backward;
    the backward graph returns the gradients.
    """
    gradients = len(_outputs(backward.graph.output_node()))
    results = joint.on_device[: len(joint.on_device) - gradients]
    output = forward.graph.output_node()
    saved = _outputs(output)[len(results) :]
    on_device = results + tuple(not was_on_cpu(each) for each in saved)
    _set_home(output, replace(joint, on_device=on_device))
    on_device = joint.on_device[len(results) :]
    _set_home(backward.graph.output_node(), replace(joint, on_device=on_device))


def _target(by: Change) -> Callable[[Node], Any]:
    return lambda node: by.argument(node.target)


def _convert(module: GraphModule, node: Node, seen: dict[int, Any], by: Change) -> None:
    if node.op not in ("placeholder", "output"):
        node.target = (by.target or _target(by))(node)
        node.args, node.kwargs = pytree.tree_map(by.argument, (node.args, node.kwargs))
    if node.op == "get_attr":
        value = _attribute(module, node)
        made = by.constant(value) if isinstance(value, torch.Tensor) else value
        if made is not value:
            _set_attribute(module, node, made)

    def convert(value: Any) -> Any:
        if id(value) not in seen:
            # The value is kept, so that its id stays its own.
            seen[id(value)] = (value, by.tensor(value))
        return seen[id(value)][1]

    value = node.meta.get("val")
    if isinstance(value, torch.Tensor) and value.device.type == "cpu":
        node.meta[_WAS_ON_CPU] = True
    for key in ("val", "eager_input_vals"):
        if node.meta.get(key) is not None:
            node.meta[key] = pytree.tree_map(convert, node.meta[key])


def _constant(value: Any) -> Any:
    """The CPU tensor in place of a constant. AOTInductor writes its bytes to a package;
    Inductor then keeps the graph, so it is a copy, and the memory of xpu is free."""
    found = on_host(value)
    if found is value or not V.aot_compilation or isinstance(found, FakeTensor):
        return found
    with unset_fake_temporarily():
        return found.clone()


def _for_host(value: Any) -> Any:
    """A device or an op, which may be an operand of another op, in a graph for the
    host."""
    if isinstance(value, OpOverload) and value in device_only.found():
        return device_ops.of_host(value)
    if isinstance(value, torch.device) and value.type == "xpu":
        return _CPU
    return value


def _graph_modules(graph: GraphModule) -> list[GraphModule]:
    return [each for each in graph.modules() if isinstance(each, GraphModule)]


def _set_home(output: Node, home: Home) -> None:
    output.meta[_HOME + home.type] = home
    output.meta[_NAMES + home.type] = [_name(each) for each in _outputs(output)]


def _name(output: Any) -> str:
    return output.name if isinstance(output, Node) else ""


def _outputs(output: Node) -> list[Any]:
    return list(output.args[0])  # type: ignore[arg-type]


def _is_on(output: Any, type: str) -> bool:
    if isinstance(output, Node) and output.target is torch.ops.aten.copy_.default:
        output = output.args[0]  # an input; the copy itself has no value
    value = output.meta.get("val") if isinstance(output, Node) else None
    return isinstance(value, torch.Tensor) and value.device.type == type


def _is_tensor(output: Any) -> bool:
    value = output.meta.get("val") if isinstance(output, Node) else None
    return isinstance(value, torch.Tensor)


def was_on_cpu(output: Any) -> bool:
    return isinstance(output, Node) and _WAS_ON_CPU in output.meta


def _values(node: Node) -> list[Any]:
    return [node.meta[key] for key in ("val", "example_value") if key in node.meta]


def _attribute(module: GraphModule, node: Node) -> Any:
    found: Any = module
    for name in str(node.target).split("."):
        found = getattr(found, name)
    return found


def _set_attribute(module: GraphModule, node: Node, value: torch.Tensor) -> None:
    """The modules on the way are copied: they may be those of the program."""
    owner: torch.nn.Module = module
    *path, name = str(node.target).split(".")
    for each in path:
        copied = copy.copy(getattr(owner, each))
        for kind in ("_modules", "_parameters", "_buffers"):
            copied.__dict__[kind] = copied.__dict__[kind].copy()
        setattr(owner, each, copied)
        owner = copied
    if name in owner._parameters:
        value = torch.nn.Parameter(value, requires_grad=False)
    setattr(owner, name, value)


def _index(device: torch.device) -> int:
    return torch.xpu.current_device() if device.index is None else device.index

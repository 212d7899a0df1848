"""What a graph is expected to take as native code and as kernels.

Pure: reads the traced graph and numbers about devices. The estimate decides whether the
second form is compiled at all; measured times decide which form runs, see
form_choice.py. So orders of magnitude are enough.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.fx import GraphModule, Node
from torch.utils import _pytree as pytree
from torch.utils.flop_counter import flop_registry

# Nanoseconds per element of float32 by native code and by a kernel: of one thread of an
# AMD EPYC (Zen 4, AVX-512), by tests/bench/bench_compiled_functions.py, 2026-11-24; erf and
# tanh 2026-11-25.
FUNCTION_NS: dict[str, tuple[float, float]] = {
    "acos": (1.6, 0.6),
    "asin": (1.3, 0.6),
    "atan": (1.8, 0.6),
    "cos": (0.6, 0.6),
    "digamma": (29.9, 2.7),
    "erf": (1.1, 0.5),
    "erfc": (4.0, 1.6),
    "erfinv": (32.2, 3.5),
    "exp": (0.6, 0.4),
    "exp2": (0.5, 0.5),
    "expm1": (0.8, 0.7),
    "lgamma": (7.0, 4.7),
    "log": (1.0, 0.8),
    "log1p": (1.4, 0.9),
    "pow": (3.4, 1.5),
    "sigmoid": (0.9, 0.6),
    "sin": (0.6, 0.8),
    "sinh": (2.1, 0.7),
    "tanh": (2.3, 0.6),
}
_OTHER_NS = (0.02, 0.03)  # a sum or a product, the same way
FLOPS_OF_FUNCTION = 20

# A kernel's launch from Python, and what one thread computes. Orders of magnitude.
_LAUNCH_US = 50.0
_BYTES_PER_US = 10_000.0
_FLOPS_PER_US = 50_000.0

# Graphs that take less native code are not compiled twice: compiling takes a second.
LEAST_US = 500.0
# Kernels have to be expected to take less than this fraction of native code.
_GAIN = 0.9


@dataclass(frozen=True)
class GraphWork:
    """What a graph computes. Sizes that are not known count by their hints.

    evaluations: elements for which each function of FUNCTION_NS is evaluated.
    others: elements that other ops compute.
    size_bytes: of the inputs and outputs.
    flops: of matrix products, convolutions and attention.
    """

    evaluations: dict[str, float] = field(default_factory=dict)
    others: float = 0
    size_bytes: float = 0
    flops: float = 0

    @property
    def all_flops(self) -> float:
        functions = FLOPS_OF_FUNCTION * sum(self.evaluations.values())
        return self.flops + functions + self.others


@dataclass(frozen=True, slots=True)
class DeviceRates:
    """Of a device other than the host's: see xpurt.mapping.auto.DeviceCost."""

    launch_us: float
    bytes_per_us: float
    flops_per_us: float


@dataclass(frozen=True, slots=True)
class Estimate:
    """Microseconds of a call."""

    native_us: float
    kernels_us: float

    @property
    def kernels_may_pay(self) -> bool:
        """Whether it is worth compiling kernels beside native code."""
        return self.native_us >= LEAST_US and self.kernels_us < _GAIN * self.native_us


def work_of(graph: GraphModule) -> GraphWork:
    """The work of a traced graph of aten ops."""
    evaluations: dict[str, float] = {}
    others = flops = 0.0
    for node in graph.graph.nodes:
        if node.op != "call_function" or not _tensors(node):
            continue
        packet = getattr(node.target, "overloadpacket", None)
        if packet in flop_registry:
            flops += _flops(node, flop_registry[packet])
            continue
        name = getattr(packet, "__name__", "")
        if name in FUNCTION_NS:
            evaluations[name] = evaluations.get(name, 0) + _elements(node)
        elif not _is_view(node):
            others += max(map(_elements, (node, *node.all_input_nodes)))
    inputs = graph.graph.find_nodes(op="placeholder")
    outputs = pytree.tree_leaves(graph.graph.output_node().args)
    ends = [each for each in (*inputs, *outputs) if isinstance(each, Node)]
    size_bytes = sum(_bytes(tensor) for node in ends for tensor in _tensors(node))
    return GraphWork(evaluations, others, size_bytes, flops)


def estimate(
    work: GraphWork, units: int, devices: Sequence[DeviceRates] = ()
) -> Estimate:
    """The expected times of one call.

    units: threads of the host that compute together.
    devices: those behind the ordinal beside the host's. Tensors count as being there:
        they stay there if all ops of the program run there.
    """
    memory = work.size_bytes / _BYTES_PER_US
    products = work.flops / _FLOPS_PER_US

    def on_host(form: int) -> float:
        functions = sum(
            elements * FUNCTION_NS[name][form]
            for name, elements in work.evaluations.items()
        )
        return memory + products + (functions + work.others * _OTHER_NS[form]) / 1e3

    by_kernels = [_LAUNCH_US + on_host(1) / units]
    by_kernels += [
        device.launch_us
        + max(
            work.size_bytes / device.bytes_per_us, work.all_flops / device.flops_per_us
        )
        for device in devices
    ]
    return Estimate(on_host(0) / units, min(by_kernels))


def _tensors(node: Node) -> list[torch.Tensor]:
    found = pytree.tree_leaves(node.meta.get("val"))
    return [each for each in found if isinstance(each, torch.Tensor)]


def _elements(node: Node) -> float:
    return sum(_hint(tensor.numel()) for tensor in _tensors(node))


def _bytes(tensor: torch.Tensor) -> float:
    return _hint(tensor.numel()) * tensor.element_size()


def _hint(size: Any) -> float:
    if isinstance(size, int):
        return size
    hint = size.node.hint  # None: it depends on data
    return 1.0 if hint is None else float(hint)


def _is_view(node: Node) -> bool:
    schema = getattr(node.target, "_schema", None)
    return schema is not None and any(each.alias_info for each in schema.returns)


def _flops(node: Node, count: Any) -> float:
    def known(value: Any) -> Any:
        value = value.meta.get("val") if isinstance(value, Node) else value
        return pytree.tree_map_only(torch.Tensor, _with_hints, value)

    args, kwargs = pytree.tree_map(known, (node.args, node.kwargs))
    flops = float(count(*args, **kwargs, out_val=known(node)))
    return flops if math.isfinite(flops) else 0.0


def _with_hints(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor of known sizes: computing with others would add guards."""
    sizes = [int(_hint(size)) for size in tensor.shape]
    return torch.empty(sizes, dtype=tensor.dtype, device="meta")

"""Inductor's backend for the sycl form: fused kernels of OpenCL C.

`register` makes it Inductor's backend for the device xpu. Nothing is decided here: a
graph that is compiled for the host has no xpu tensors, and never reaches it.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from torch._inductor import config
from torch._inductor.choices import InductorChoices
from torch._inductor.codegen import common
from torch._inductor.codegen.simd import SIMDScheduling
from torch._inductor.codegen.wrapper import (
    PythonWrapperCodegen,
    SubgraphPythonWrapperCodegen,
)
from torch._inductor.custom_graph_pass import CustomGraphModulePass
from torch._inductor.utils import IndentedBuffer
from torch._inductor.virtualized import V
from torch.utils._ordered_set import OrderedSet

from xpurt import _C
from xpurt.compiler import current
from xpurt.compiler.kernel_launch import PREFIX
from xpurt.compiler.kernel_plan import devices_of
from xpurt.compiler.opencl_arguments import group_of, sizes_of
from xpurt.compiler.opencl_kernel import OpenCLKernel
from xpurt.compiler.scheduled_tasks import tasks_of
from xpurt.mapping import current_placement

_static: ContextVar[tuple[int, ...]] = ContextVar("xpurt_static", default=())

# What Inductor has to leave out, since the kernels do not have it.
_SETTINGS = {
    "online_softmax": False,
    "combo_kernels": False,
    "triton.cudagraphs": False,  # XPU graphs are recorded by `recording`
    "triton.cooperative_reductions": False,
    "triton.native_matmul": False,
    "triton.multi_kernel": 0,
}


class OpenCLScheduling(SIMDScheduling):
    """Fuses as for other SIMD devices, and defines the kernels."""

    kernel_type = OpenCLKernel

    def __init__(self, scheduler: Any) -> None:
        super().__init__(scheduler)
        self._planned: dict[str, int] | None = None

    def can_fuse(self, node1: Any, node2: Any) -> bool:
        """Ops that are planned on different devices stay apart."""
        if self._device_of(node1) != self._device_of(node2):
            return False
        return bool(super().can_fuse(node1, node2))  # type: ignore[no-untyped-call]

    can_fuse_vertical = can_fuse
    can_fuse_horizontal = can_fuse

    def _device_of(self, node: Any) -> int:
        """The position of the device that is planned for a node; -1: there is none."""
        if self._planned is None:  # the first nodes are made before all are known
            self._planned = _plan(self.scheduler, node.get_device().index)
        return self._planned.get(node.get_first_name(), -1)

    @classmethod
    def get_backend_features(cls, device: torch.device) -> OrderedSet[Any]:
        return OrderedSet([common.BackendFeature.INPLACE_BUFFERS])

    def define_kernel(self, src_code: str, node_schedule: Any, kernel: Any) -> str:
        wrapper = current.graph().wrapper_code
        (first, *_) = kernel.features.scheduler_nodes()
        planned = f"planned={self._device_of(first)}"
        # The text alone has no size of a range that whole work-groups cover.
        described = ", ".join([*_described(kernel), planned])
        key = f"{src_code}{described}"
        if key in wrapper.src_to_kernel:
            return str(wrapper.src_to_kernel[key])
        name = f"{PREFIX}{wrapper.next_kernel_suffix()}"
        wrapper.src_to_kernel[key] = name
        code = IndentedBuffer()
        code.writeline(f"{name} = xpu_kernel({name!r}, r'''")
        code.splice(src_code.replace("KERNEL_NAME", name))
        code.writeline(f"''', {described})")
        wrapper.define_kernel(name, code.getvalue().partition(" = ")[2], gpu=False)
        return name


def _letters(kernel: Any) -> str:
    return "".join(each.letter for each in kernel.arguments)


def _described(kernel: Any) -> list[str]:
    sizes, known = sizes_of(kernel)
    functions = [(each.letter, each.templates) for each in kernel.functions]
    flops = max(1, sum(kernel.features.op_counts().values()))
    reduced = current.graph().sizevars.optimization_hint(
        kernel.features.reduction_numel, fallback=1
    )
    return [
        f"functions={functions!r}",
        f"templates={list(kernel.templates)!r}",
        f"arguments={_letters(kernel)!r}",
        f"group={group_of(kernel)!r}",
        f"lanes={kernel.reduces and not kernel.one_lane!r}",
        f"faults={kernel.faults!r}",
        f"flops={float(flops) * max(int(reduced), 1)!r}",
        f"sizes={[int(size) for size in sizes] if known else []!r}",
    ]


def _plan(scheduler: Any, index: int) -> dict[str, int]:
    """The devices of the scheduled nodes on xpu:index; empty without a plan.

    A graph with code for the host has no plan: that code waits for the devices.
    """
    costs = _C.device_costs(index)
    devices = [node.get_device() for node in scheduler.nodes]
    if len(costs) < 2 or any(
        each is not None and each.type == "cpu" for each in devices
    ):
        return {}
    home = current_placement().homes[index]
    names = current.graph().graph_input_names
    static = frozenset(names[place] for place in _static.get() if place < len(names))
    return devices_of(tasks_of(scheduler.nodes, static), costs, home)


class _OnXpu:
    """Allocations of the code that calls the kernels."""

    def make_allocation(
        self: Any,
        name: str,
        device: torch.device,
        dtype: torch.dtype,
        shape: Any,
        stride: Any,
        allocation_shape: Any = None,
        is_pinned: bool = False,
    ) -> str:
        if device.type != "xpu":
            return str(
                super().make_allocation(  # type: ignore[misc]
                    name, device, dtype, shape, stride, allocation_shape, is_pinned
                )
            )
        sizes = self.codegen_python_shape_tuple(shape)
        allocated = self.codegen_python_shape_tuple(allocation_shape or shape)
        strides = self.codegen_python_shape_tuple(stride)
        made = f"{name} = allocate_xpu({allocated}, {strides}, {dtype}, {device.index})"
        if sizes != allocated:
            made += f".as_strided({sizes}, {strides})"
        return made


class OpenCLWrapper(_OnXpu, PythonWrapperCodegen):
    """The Python code that calls the kernels of a graph."""

    @staticmethod
    def create(
        is_subgraph: bool,
        subgraph_name: Any,
        parent_wrapper: Any,
        partition_signatures: Any = None,
    ) -> Any:
        if not is_subgraph:
            return OpenCLWrapper()  # type: ignore[no-untyped-call]
        return _SubgraphWrapper(subgraph_name, parent_wrapper, partition_signatures)

    def write_header(self) -> None:
        super().write_header()
        self.imports.splice(
            """
            from xpurt._C import allocate as allocate_xpu
            from xpurt.compiler.kernel_launch import kernel as xpu_kernel
            """,
            strip=True,
        )


class _SubgraphWrapper(_OnXpu, SubgraphPythonWrapperCodegen):
    pass


class Choices(InductorChoices):
    """Inductor's heuristics, where they depend on the device."""

    @staticmethod
    def reduction_split_factor(
        device: torch.device,
        reduction_numel_hint: int,
        numel_hint: int,
        inner_reduction: bool,
    ) -> int:
        """Divides a reduction until there are some work-groups per compute unit, each
        with some thousand elements."""
        units = torch.xpu.get_device_properties(device).max_compute_units
        wanted = 4 * units * (1 if inner_reduction else 64)
        if numel_hint >= wanted:
            return 1
        least = 4096 if inner_reduction else 64
        return int(
            max(1, min(wanted // max(numel_hint, 1), reduction_numel_hint // least))
        )


def register(device_pass: CustomGraphModulePass) -> None:
    """Makes OpenCLScheduling Inductor's backend for xpu."""
    common.init_backend_registration()
    common.register_backend_for_device(
        "xpu", OpenCLScheduling, OpenCLWrapper, device_custom_pass=device_pass
    )


@contextmanager
def generating(static: Sequence[int]) -> Iterator[None]:
    """Within it, Inductor generates kernels of OpenCL C for xpu tensors.

    static: the positions of inputs that are in the same memory in all calls.
    """
    token = _static.set(tuple(static))
    try:
        with config.patch(_SETTINGS), V.set_choices_handler(Choices()):
            yield
    finally:
        _static.reset(token)
        # It keeps nodes of the newest graphs, and with them the graphs' constants.
        SIMDScheduling.candidate_tilings.cache_clear()

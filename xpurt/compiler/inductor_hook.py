"""Connects xpu to Inductor. All changes of Inductor are here.

`change` is called once `torch._inductor.compile_fx` has been imported, before its first
use: `import torch` alone imports none of it.
"""

import copy
import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from types import ModuleType
from typing import Any

import torch
from torch._functorch._aot_autograd.utils import make_boxed_func
from torch._inductor import config
from torch._inductor.exc import InductorError
from torch._inductor.freezing_utils import has_frozen_params
from torch._inductor.utils import BoxedBool
from torch.utils import _pytree as pytree

from xpurt import _C
from xpurt.compiler import (
    called_ops,
    cpu_programs,
    divided_graphs,
    encoder_layers,
    generated_code,
    host_attention,
    host_code,
    host_graph,
    host_masks,
    inductor_devices,
    kernel_launch,
    op_by_op,
    other_programs,
    packages,
    random_ops,
    recording,
    second_form,
    traced_layouts,
)
from xpurt.compiler.device_only import ops as device_only
from xpurt.compiler.device_only import results
from xpurt.compiler.flex import decomposition as flex
from xpurt.compiler.form_estimate import Estimate, work_of
from xpurt.compiler.frozen import code_constants, forms, primitives
from xpurt.compiler.higher_order import numbers_of_loops, regions, triton_kernels
from xpurt.compiler.renamed import graphs as renamed_graphs
from xpurt.compiler.trained import convolutions
from xpurt.compiler.warn_once import warn_once
from xpurt.errors import KernelBuildError
from xpurt.kernels import get_kernel_policy


def change(compile_fx: ModuleType) -> None:
    """Makes torch.compile take xpu tensors."""
    inductor_devices.define()
    called_ops.define()
    cpu_programs.decide_as_without_xpu()
    random_ops.define()
    device_only.define()
    results.define()
    host_attention.define()
    host_masks.define()
    convolutions.define()
    traced_layouts.define()
    divided_graphs.define()
    primitives.define()
    replaced = {
        "compile_fx": _choose_form,
        "partition_fn": _partition,
        "compile_fx_forward": _convert_before,
        "compile_fx_backward": _convert_before,
        "fw_compiler_freezing": _freeze,
        "_compile_fx_inner": _compile_with_home,
        "fx_codegen_and_compile": _keep_home,
    }
    for name, replacement in replaced.items():
        setattr(compile_fx, name, replacement(getattr(compile_fx, name)))
    lowered = compile_fx.GraphLowering
    lowered.run_node = _check_devices(lowered.run_node)
    graph = compile_fx.CompiledFxGraph
    graph.post_compile = _post_compile(graph.post_compile)
    renamed_graphs.define(compile_fx)


def _check_devices(before: Callable[..., Any]) -> Callable[..., Any]:
    """Some functions of Inductor take the device of the first operand, and code for the
    host would read memory of the device."""

    @functools.wraps(before)
    def run_node(graph: Any, node: torch.fx.Node) -> Any:
        found = before(graph, node)
        value = node.meta.get("val")
        if isinstance(value, torch.Tensor) and value.device.type == "xpu":
            device = found.get_device() if hasattr(found, "get_device") else None
            if device is not None and device.type != "xpu":
                raise NotImplementedError(
                    f"the code of {node.target} would run on {device}, and its result "
                    f"belongs on {value.device}"
                )
        return found

    return run_node


def _choose_form(before: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(before)
    def compile_fx(
        model: torch.fx.GraphModule, inputs: Sequence[Any], *args: Any, **kwargs: Any
    ) -> Any:
        found = _ordinals(model, inputs)
        if not found:
            return before(model, inputs, *args, **kwargs)
        triton_kernels.refuse(model)
        op_by_op.keep_fullgraph()
        if unknown := device_only.without_functional_form(model):
            packages.refuse(unknown)
            op_by_op.announce(unknown)
            return model.forward
        form = form_of(found, model)
        if form == Form.SYCL or config.freezing:
            encoder_layers.inline(model)
        if config.triton.cudagraphs and not config.max_autotune and form != Form.SYCL:
            warn_once(
                'mode="reduce-overhead" records no XPU graph; the compiled code is '
                "called as in the default mode"
            )
        reason = (
            _why_not_host(found, model) or f"the kernel policy is {get_kernel_policy()}"
        )
        if form != Form.NATIVE:
            packages.refuse(reason)
        if get_kernel_policy() == "auto" and reason == host_code.why_none():
            warn_once(f"torch.compile makes kernels of OpenCL C: {reason}")
        if form != Form.EAGER:
            with host_code.compiling_form(form.value, min(found)):
                return before(model, inputs, *args, **kwargs)
        op_by_op.announce(reason)
        from torch._dynamo.backends.debugging import aot_eager

        return aot_eager(model, list(inputs))

    return compile_fx


def _ordinals(model: Any, inputs: Sequence[Any]) -> set[int]:
    if isinstance(model, torch.fx.GraphModule):
        return host_graph.ordinals_in(model, inputs)
    return set()


class Form(Enum):
    """How a graph of xpu tensors runs."""

    NATIVE = "native"  # Inductor's code for the CPU, on the same bytes
    SYCL = "sycl"  # kernels of OpenCL C
    EAGER = "eager"  # op by op


def form_of(ordinals: set[int], graph: torch.fx.GraphModule) -> Form:
    """The form of a graph with tensors of these ordinals, by the kernel policy."""
    policy = get_kernel_policy()
    if policy == "sycl":
        return Form.SYCL
    if not _why_not_host(ordinals, graph):
        return Form.NATIVE
    return Form.EAGER if policy == "native" else Form.SYCL


def _why_not_host(ordinals: set[int], graph: torch.fx.GraphModule) -> str:
    """The reason why code for the host can't compute the graph; "" if it can."""
    if len(ordinals) > 1:
        return "tensors of several ordinals are in one graph"
    for index in ordinals:
        if not _C.host_reads(index):
            return f"the host can't read the memory of xpu:{index}"
        if not _C.host_computes(index):
            return f"the GPU of xpu:{index} does the work"
    if name := host_graph.group_without_cpu(graph):
        return f'the process group "{name}" has no backend for CPU tensors'
    return host_code.why_none()


def _convert_before(before: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(before)
    def compile(
        graph: torch.fx.GraphModule, inputs: Sequence[Any], *args: Any, **kwargs: Any
    ) -> Any:
        inputs = _to_host(graph, inputs)
        _decompose(graph, inputs)
        return before(graph, inputs, *args, **kwargs)

    return compile


def _to_host(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> list[Any]:
    if host_graph.home_of(graph) is None:
        found = host_graph.ordinals_in(graph, inputs)
        if not found or form_of(found, graph) != Form.NATIVE:
            return list(inputs)
        host_graph.to_host(graph, *found)
    return [host_graph.on_host(each) for each in inputs]


def _decompose(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> None:
    is_host = host_graph.home_of(graph) is not None
    if is_host or host_graph.ordinals_in(graph, inputs):
        flex.decompose(graph, for_host=is_host)


def _partition(before: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(before)
    def partition_fn(
        joint: torch.fx.GraphModule, inputs: Any, *args: Any, **kwargs: Any
    ) -> Any:
        # The inputs are a pair of lists: primals and tangents.
        flat, form = pytree.tree_flatten(inputs)
        if not flat:  # a region, which is changed with the whole graph
            return before(joint, inputs, *args, **kwargs)
        if host_graph.ordinals_in(joint, flat):
            regions.inline(joint)
            flex.leave_logarithms(joint)
        inputs = pytree.tree_unflatten(_to_host(joint, flat), form)
        forward, backward = before(joint, inputs, *args, **kwargs)
        home = host_graph.home_of(joint)
        if home is not None:
            host_graph.divide_home(home, forward, backward)
        return forward, backward

    return partition_fn


def _freeze(before: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(before)
    def fw_compiler_freezing(
        graph: torch.fx.GraphModule, inputs: Sequence[Any], **kwargs: Any
    ) -> Any:
        found = host_graph.ordinals_in(graph, inputs)
        is_host = bool(found) and form_of(found, graph) == Form.NATIVE
        if found:
            flex.decompose(graph, for_host=is_host)
        if not is_host:
            return before(graph, inputs, **kwargs)
        return forms.freeze(functools.partial(before, **kwargs), graph, inputs)

    return fw_compiler_freezing


def _compile_with_home(before: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(before)
    def compile_fx_inner(
        graph: torch.fx.GraphModule, inputs: Sequence[Any], *args: Any, **kwargs: Any
    ) -> Any:
        home = host_graph.home_of(graph)
        if home is None:
            found = host_graph.ordinals_in(graph, inputs)
            if found:
                told = kwargs.get("cudagraphs")
                wanted = bool(told) and not config.max_autotune
                kwargs["cudagraphs"] = BoxedBool(False)
                compile = functools.partial(before, *args, **kwargs)
                if not wanted:  # primitives can't be recorded
                    primitives.fuse(graph, inputs, min(found))
                with (
                    recording.recording(wanted=wanted),
                    numbers_of_loops.allowed(graph),
                ):
                    return _compile_kernels(compile, graph, inputs, min(found))
            with host_code.compiling(None):
                compiled = before(graph, inputs, *args, **kwargs)
        else:
            compile = functools.partial(before, *args, **kwargs)
            written = host_graph.written_inputs(graph)
            kernels = _compile_beside(compile, graph, inputs, home)
            random_ops.replace(graph)
            host_attention.replace(graph)
            if not kwargs.get("is_inference", False):
                convolutions.replace(graph)
            with (
                host_code.compiling_form(Form.NATIVE.value, home.index),
                host_code.compiling(home),
                packages.described(graph, home),
                numbers_of_loops.allowed(graph),
            ):
                compiled = _compile_or_interpret(compile, graph, inputs)
            is_compiled = hasattr(compiled, "current_callable")
            if kernels is not None and is_compiled:
                second_form.join(compiled, *kernels, home.index)
            if not is_compiled:  # it has no call, or runs op by op
                code = host_code.host_code(compiled, home, written)
                return host_code.boxed(code)
        return compiled

    return compile_fx_inner


def _compile_kernels(
    compile: functools.partial[Any],
    graph: torch.fx.GraphModule,
    inputs: Sequence[Any],
    index: int,
) -> Any:
    """Compiles a graph to kernels for xpu:index. A graph with an op that kernels do not
    have, or with a kernel that the driver refuses, runs op by op, with a warning."""
    other_programs.refuse()
    with _generating(index, compile):
        return _compile_or_interpret(compile, graph, inputs)


def _compile_or_interpret(
    compile: functools.partial[Any], graph: torch.fx.GraphModule, inputs: Sequence[Any]
) -> Any:
    """Compiles a graph. If it has what Inductor can't compile, it runs op by op, with a
    warning."""
    # Passes change the graph before an op is found to be missing.
    before = torch.fx.GraphModule(graph, copy.deepcopy(graph.graph))
    reason = numbers_of_loops.why_op_by_op(graph)
    try:
        if not reason:
            return compile(graph, inputs)
    except (InductorError, KernelBuildError) as error:
        reason = op_by_op.reason_of(error)
        if not reason:
            raise
    packages.refuse(reason)
    op_by_op.announce(reason)
    return make_boxed_func(before.forward)


@contextmanager
def _generating(index: int, compile: functools.partial[Any]) -> Iterator[None]:
    """Within it, `compile` makes kernels for xpu:index."""
    from xpurt.compiler import opencl_scheduling

    opencl_scheduling.register(host_code.KeyOfHome())
    with (
        host_code.compiling_form(Form.SYCL.value, index),
        opencl_scheduling.generating(compile.keywords.get("static_input_idxs", ())),
    ):
        yield


def _compile_beside(
    compile: functools.partial[Any],
    graph: torch.fx.GraphModule,
    inputs: Sequence[Any],
    home: host_graph.Home,
) -> tuple[Any, Estimate] | None:
    """The kernels of a graph for the host, if they may be faster, and the expected
    times."""
    if get_kernel_policy() != "auto" or other_programs.is_wanted():
        return None
    if has_frozen_params(graph):  # its forms are joined in frozen/forms.py
        return None
    expected = second_form.estimate_of(work_of(graph), home.index)
    if not expected.kernels_may_pay:
        return None
    with _generating(home.index, compile):
        kernels = second_form.compile_kernels(compile, graph, inputs, home)
    return None if kernels is None else (kernels, expected)


def _keep_home(before: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(before)
    def fx_codegen_and_compile(*args: Any, **kwargs: Any) -> Any:
        compiled = before(*args, **kwargs)
        is_backward = bool(kwargs.get("is_backward"))
        return host_code.keep_home(compiled, is_backward=is_backward)

    return fx_codegen_and_compile


def _post_compile(before: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(before)
    def post_compile(
        compiled: Any, inputs: Any, constants: Any, options: dict[str, Any]
    ) -> None:
        generated_code.keep(compiled)
        if "xpu" not in compiled.device_types:
            if host_code.has_home(compiled):
                code_constants.free_with_code(compiled.current_callable)
            before(compiled, inputs, constants, options)
            host_code.take_xpu_tensors(compiled)
            return
        code_constants.free_with_code(compiled.current_callable)
        kernel_launch.build_all(compiled.current_callable, compiled.device_idxs)
        wanted = recording.is_wanted(options["cudagraphs"])
        without = {**options, "cudagraphs": BoxedBool(False)}
        before(compiled, inputs, constants, without)
        if wanted:
            compiled.current_callable = recording.recorded(compiled)

    return post_compile

"""The faults that are planted in the layers above eager mode, by layer: a file below
xpurt, a line of it, and what the line becomes."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Fault:
    file: str
    line: str
    becomes: str

    def __str__(self) -> str:
        return f"{self.file}: {self.line.strip()}  ->  {self.becomes.strip() or 'gone'}"


_OPTIMIZE: Final = (
    ("fusions.py", "        if is_no_dropout(node):", "        if is_no_dropout(node) and False:"),
    ("primitives.py", "    if torch.is_grad_enabled():", "    if False:"),
    ("fusions.py", "    if first is second:", "    if False:"),
    ("fusions.py", '    if node.target in ("add_", operator.iadd) and first is not one:', "    if False:"),
    ("fusions.py", "    return next(iter(last.users)) if len(last.users) == 1 else None", "    return next(iter(last.users), None)"),
    ("fusions.py", "    other: Any = second if first is one else first", "    other: Any = first if first is one else second"),
    ("fusions.py", "    args = (*operands, chain.other, chain.activation)", "    args = (*operands, chain.other, NONE)"),
    ("fusions.py", "        if id(value) in names and type(value) is nn.Parameter", "        if id(value) in names and False"),
    ("activations.py", '    return Activation("clamp", min_val, max_val)', '    return Activation("clamp", max_val, min_val)'),
    ("activations.py", '    return Activation("gelu" if approximate == "none" else "gelu_tanh")', '    return Activation("gelu")'),
    ("activations.py", '    return Activation("leaky_relu", negative_slope)', '    return Activation("leaky_relu", 0.01)'),
    ("fused_convolution.py", "        scale = torch.rsqrt(norm.variance.float() + norm.eps)", "        scale = torch.rsqrt(norm.variance.float())"),
    ("fused_convolution.py", "        shift = -norm.mean if bias is None else bias - norm.mean", "        shift = -norm.mean"),
    ("fused_convolution.py", "        if norm.bias is not None:", "        if False:"),
    ("fused_convolution.py", "        return self.geometry, None if self.norm is None else self.norm.eps", "        return (self.geometry,)"),
    ("fused_convolution.py", "    elif groups == 1:", "    elif True:"),
    ("fused_linear.py", "    if not adds(other, dtype, sizes):", "    if False:"),
    ("fused_linear.py", "    weight = torch.cat([weight for weight, _ in layers])", "    weight = torch.cat([weight for weight, _ in layers[::-1]])"),
    ("fused_linear.py", "    use = x.dtype, x.device, rows.shape[0], other is None, activation", "    use = x.dtype, x.device, rows.shape[0], other is None"),
    ("primitives.py", "    if weight.device != x.device or weight.is_inference():", "    if weight.device != x.device:"),
    ("primitives.py", "    if not may_be_packed(weight, *others):", "    if False:"),
    ("packed_weights.py", "        if found is None or not found.are_of(parameters):", "        if found is None:"),
    ("packed_weights.py", "        _packs[parameter] = None", "        pass"),
    ("packed_weights.py", "            if _packs.get(each) is not None:", "            if False:"),
    ("patterns/graph_calls.py", '        return str(target).endswith("_") and not str(target).endswith("__")', "        return False"),
    ("patterns/graph_calls.py", "        return name in _WRITING_OPERATORS", "        return False"),
    ("patterns/layers.py", '    return given is not None and given.get("training") is False', "    return given is not None"),
    ("patterns/layers.py", '    if given is None or given.get("training", False) is not False:', "    if given is None:"),
    ("patterns/rms_norm.py", "            if not isinstance(x, Node) or (back and back[1] != dtype_of(x)):", "            if not isinstance(x, Node):"),
    ("patterns/attention.py", "        if cast_to is not None and cast_to != dtype_of(q):", "        if False:"),
    ("patterns/attention.py", "    if given is None or given.get(\"dim\") != -1:", "    if given is None:"),
    ("patterns/pattern.py", "    ) or is_written_within(match.nodes):", "    ):"),
    ("patterns/swiglu.py", "        if gate.x is not up.x or gate.outputs != up.outputs:", "        if gate.outputs != up.outputs:"),
    ("patterns/joined_linears.py", "        if len(layers) > 1 and not is_written_within(nodes):", "        if len(layers) > 1:"),
    ("patterns/joined_linears.py", "    return [each.contiguous() for each in parts]", "    return [each.contiguous() for each in parts[::-1]]"),
    ("captured_forward.py", '    "skip_nnmodule_hook_guards": False,', '    "skip_nnmodule_hook_guards": True,'),
    ("captured_forward.py", '    name = f"{run.__name__.strip(\'_\')}_{next(_numbers)}"', '    name = "forward"'),
    ("measured_forms.py", "            if faster:", "            if not faster:"),
    ("measured_forms.py", "    return (*key, size.bit_length()), x", "    return key, x"),
    ("module_classes.py", "        or nn.modules.module._has_any_global_hook()  # type: ignore[no-untyped-call]", ""),
    ("module_classes.py", "        or torch.is_grad_enabled()", ""),
    ("module_classes.py", "        or is_fx_symbolic_tracing()", ""),
    ("comparison.py", "    allowed = 2 * own + _ULPS * torch.finfo(_computed_in(a)).eps * max(largest, scale)", "    allowed = 2 * own + 0.1 * largest"),
)  # fmt: skip

FAULTS: Final = {
    "optimize": [Fault(f"optimization/{file}", *lines) for file, *lines in _OPTIMIZE],
}

# What is run for a layer, the quickest first.
TESTS: Final = {
    "optimize": (
        "tests/optimization/test_captured_forward.py",
        "tests/optimization/test_measured_forms.py",
        "tests/optimization/test_left_as_it_is.py",
        "tests/optimization/test_joined_linears.py",
        "tests/optimization/test_attention_pattern.py",
        "tests/optimization/test_patterns.py",
        "tests/optimization/test_optimize.py",
        "tests/optimization/test_winograd_layers.py",
        "tests/generated/test_through_layers.py",
        "tests/distributed/test_optimized_inference.py",
    ),
}

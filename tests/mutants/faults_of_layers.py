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

_QUANTIZE: Final = (
    ("folding.py", "    if _are_close(before, _result(model, calibration)):", "    if True:"),
    ("folding.py", "    return [fold for fold in folds if _all_hold(model, [fold], calibration, before)]", "    return []"),
    ("folding.py", "        if not bool(error <= TOLERANCE * size):", "        if not bool(error <= 0.2 * size):"),
    ("folding.py", "        model.set_submodule(norm_name, norm)", "        pass"),
    ("folding.py", "        handles.append(layer.register_forward_hook(lambda _, __, x: torch.relu(x)))", "        handles.append(layer.register_forward_hook(lambda _, __, x: x))"),
    ("folding.py", "        handles.pop().remove()", "        handles.pop()"),
    ("folding.py", "    scale = of_x.pow(alpha) / of_w.amax(0).clamp_min(1e-5).pow(1 - alpha)", "    scale = of_x.pow(alpha) / of_w.amax(0).clamp_min(1e-5).pow(alpha)"),
    ("folding.py", "    scale = torch.where(scale.isfinite() & (scale > 1e-5), scale, 1.0)", "    scale = scale"),
    ("folding.py", "            norm.bias = changed(bias, 1 / scale)", "            pass"),
    ("folding.py", "            layer.weight = changed(layer.weight, scale)", "            layer.weight = changed(layer.weight, 1 / scale)"),
    ("folding.py", "    return Fold(relu_name, [layer_name], do, undo, is_relu=True)", "    return Fold(relu_name, [layer_name], do, undo)"),
    ("layers.py", "            self._buffers[name] = applied if same else buffer.to(applied.device)", "            self._buffers[name] = applied"),
    ("layers.py", "        bias = None if layer.bias is None else layer.bias.detach().float().clone()", "        bias = None"),
    ("layers.py", '        self.register_buffer("x_zero_point", zero_point)', '        self.register_buffer("x_zero_point", None if zero_point is None else zero_point * 0)'),
    ("layers.py", "        self.groups, self.relu = layer.groups, relu", "        self.groups, self.relu = layer.groups, False"),
    ("layers.py", "        single = x.dim() == len(self.kernel_size) + 1", "        single = False"),
    ("layers.py", "    if any(zeros % 2 for zeros in both):", "    if False:"),
    ("layers.py", "        spread * (size - 1)", "        size - 1"),
    ("scheme.py", '        return "" if self.smooth_quant is None else "smooth_quant="', '        return ""'),
    ("scheme.py", "        if type(layer) not in (nn.Linear, *CONVOLUTIONS):", "        if False:"),
    ("scheme.py", "        if layer._forward_hooks or layer._forward_pre_hooks:", "        if layer._forward_hooks:"),
    ("scheme.py", "        if not bool(weight.detach().isfinite().all()):", "        if False:"),
    ("scheme.py", '            if layer.padding_mode != "zeros":', "            if False:"),
    ("activations.py", '            made = make(dtype=torch.quint8, quant_min=0, quant_max=255)', '            made = make(dtype=torch.quint8, quant_min=0, quant_max=127)'),
    ("activations.py", "        largest[name] = found if before is None else torch.maximum(before, found)", "        largest[name] = found"),
    ("weights.py", "    scale = torch.where(largest > 0, largest / 127, 1.0)", "    scale = largest / 127"),
    ("weights.py", "    largest = values.abs().flatten(1).amax(1)", "    largest = values.flatten(1).amax(1)"),
    ("weights.py", "    scale = (groups.amax(2) - minimum) / 15", "    scale = (groups.amax(2) - minimum) / 16"),
    ("weights.py", "    return (low | high << 4).flatten(1), scale, minimum", "    return (high | low << 4).flatten(1), scale, minimum"),
    ("calibration.py", "            if isinstance(result, Tensor) and not isinstance(module, nn.Identity):", "            if isinstance(result, Tensor):"),
    ("calibration.py", "            return model(**given)", "            return model(*given.values())"),
    ("model.py", "        quantized = model if inplace else copy.deepcopy(model)", "        quantized = model"),
    ("model.py", "        for name in [name for name in chosen if name not in links.calls]:", "        for name in []:"),
    ("model.py", "        module.activation_relu_or_gelu = 0", "        pass"),
    ("model.py", "        for name, child in list(parent._modules.items()):", "        for name, child in list(parent._modules.items())[:1]:"),
    ("model.py", "    rectified = {name for fold in folded if fold.is_relu for name in fold.into}", "    rectified = {name for fold in folded for name in fold.into}"),
)  # fmt: skip

_FUSED: Final = (
    ("activations.py", "        return grad * s * (1 + values * (1 - s))", "        return grad * s * (1 + values * s)"),
    ("activations.py", "            lambda g, y: _aten.threshold_backward(g, y, 0),", "            lambda g, y: g,"),
    ("activations.py", '            lambda g, z: _aten.gelu_backward(g, z, approximate="tanh"),', "            lambda g, z: _aten.gelu_backward(g, z),"),
    ("activations.py", '        Activation("silu", _aten.silu_, _silu_gradient),', '        Activation("silu", _aten.silu_, _silu_gradient, by_result=True),'),
    ("convolution.py", "            self.groups >= 1", "            True"),
    ("convolution.py", "                len(given) in (1, axes) and all(each >= least for each in given),", "                len(given) in (1, axes),"),
    ("convolution.py", "            list(each) * (self.axes // len(each))", "            list(each[:1]) * self.axes"),
    ("convolution.py", "        shift = -self.running_mean * scale", "        shift = -self.running_mean"),
    ("convolution.py", "            shift = shift + self.bias * scale", "            shift = shift + self.bias"),
    ("convolution.py", "            shift = shift + self.bn_bias", "            pass"),
    ("convolution.py", "        return scale if self.bn_weight is None else scale * self.bn_weight", "        return scale"),
    ("convolution.py", "        return made.contiguous(memory_format=self.format)", "        return made"),
    ("convolution.py", "            normed = normed + layer.per_channel(layer.bn_bias)", "            pass"),
    ("convolution.py", "        of_bn_weight = ((before * values).sum(others) * unit).to(layer.bn_weight.dtype)", "        of_bn_weight = (before * values).sum(others).to(layer.bn_weight.dtype)"),
    ("convolution.py", "        values = values - layer.per_channel(layer.running_mean)", "        pass"),
    ("convolution.py", "        (before * layer.per_channel(scale)).to(grad.dtype),", "        before.to(grad.dtype),"),
    ("linear.py", "    if not after.is_fused or rows.shape[0] < _FEWEST_ROWS or not weight.numel():", "    if rows.shape[0] < _FEWEST_ROWS or not weight.numel():"),
    ("linear.py", "    values = F.linear(x, weight, bias) if output is None else output", "    values = F.linear(x, weight) if output is None else output"),
    ("linear.py", "        rows.sum(0) if to_bias else None,", "        rows.mean(0) if to_bias else None,"),
    ("paged_attention.py", "        if not 0 <= length <= slots:", "        if False:"),
    ("paged_attention.py", "        if length == 0:", "        if False:"),
    ("paged_attention.py", "        if bool(((table < 0) | (table >= blocks)).any()):", "        if bool((table >= blocks).any()):"),
    ("paged_attention.py", "        return out.zero_()", "        return out"),
    ("paged_attention.py", "        rows = query[b].reshape(keys.shape[0], -1, keys.shape[2])", "        rows = query[b].reshape(-1, keys.shape[0], keys.shape[2]).transpose(0, 1)"),
    ("rms_norm.py", "    added = x.clone() if residual is None else x + residual", "    added = x if residual is None else x + residual"),
    ("rms_norm.py", "    to_x = (scaled - unit * share) * scale", "    to_x = scaled * scale"),
    ("rms_norm.py", "        to_x = to_x + grad_added", "        pass"),
    ("rms_norm.py", "        return to_x, torch.zeros_like(weight)", "        return to_x, torch.ones_like(weight)"),
    ("rms_norm.py", "    return x.dtype if residual is None else torch.promote_types(x.dtype, residual.dtype)", "    return x.dtype"),
    ("rms_norm.py", "            to_added = grad_added if to_added is None else to_added + grad_added", "            to_added = grad_added if to_added is None else to_added"),
    ("rotary.py", "    if interleaved:", "    if not interleaved:"),
    ("rotary.py", "        out[..., 2 * pairs :] = x[..., 2 * pairs :]", "        pass"),
    ("rotary.py", "        grad_q, grad_k, cos, -sin, ctx.interleaved", "        grad_q, grad_k, cos, sin, ctx.interleaved"),
    ("rotary.py", "    to_sin = (of_b * a - of_a * b).sum_to_size(cos.shape)", "    to_sin = (of_b * a + of_a * b).sum_to_size(cos.shape)"),
    ("rotary.py", "        angles = [each.expand(*x.shape[:-1], pairs) for each in (cos, sin)]", "        angles = [each.expand(*x.shape[:-1], pairs) for each in (sin, cos)]"),
    ("swiglu.py", "    if all(each.is_contiguous() for each in tensors):", "    if True:"),
    ("swiglu.py", "    return to_gate.contiguous(), F.silu(gate).mul_(grad).contiguous()", "    return to_gate.contiguous(), gate.sigmoid().mul_(grad).contiguous()"),
    ("swiglu.py", "    return F.silu(gate).mul_(up).contiguous()", "    return F.silu(gate).mul_(up)"),
    ("cross_entropy.py", "            wrong = counted[(counted < 0) | (counted >= classes)]", "            wrong = counted[counted >= classes]"),
    ("cross_entropy.py", "            yield slice(first, min(rows, first + self.rows_of_chunk))", "            yield slice(first, first + self.rows_of_chunk - (first > 0))"),
    ("cross_entropy.py", "            self._hidden[rows] = slopes @ loss.weight", "            self._hidden[:len(slopes)] = slopes @ loss.weight"),
    ("cross_entropy.py", "        losses = losses.sum() / loss.is_counted().sum()", "        losses = losses.mean()"),
    ("cross_entropy.py", "    losses = losses.where(loss.is_counted(), 0)", "    losses = losses"),
    ("cross_entropy.py", "        made = [(each * grad).to(each.dtype) for each in found]", "        made = found"),
    ("definition.py", "            and argument.dtype != torch.float64", "            and True"),
    ("definition.py", "            and argument.device.type == device", "            and True"),
)  # fmt: skip

_FOLDERS: Final = {
    "optimize": ("optimization", _OPTIMIZE),
    "quantize": ("quantization", _QUANTIZE),
    "fused": ("fused_ops", _FUSED),
}

FAULTS: Final = {
    layer: [Fault(f"{folder}/{file}", *lines) for file, *lines in rows]
    for layer, (folder, rows) in _FOLDERS.items()
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
    "quantize": (
        "tests/quantization/test_quantize.py",
        "tests/quantization/test_layers_compute.py",
        "tests/quantization",
    ),
    "fused": (
        "tests/fused_ops/test_fused_edges.py",
        "tests/fused_ops/test_fused_bad_input.py",
        "tests/fused_ops",
    ),
}

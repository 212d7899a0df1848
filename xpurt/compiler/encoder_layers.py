"""PyTorch's op for a whole encoder layer, as the ops that it consists of.

In evaluation mode nn.TransformerEncoderLayer calls one op. Compiled code would call it, too,
and could neither fuse what is in it nor pack its weights. On a GPU the host would compute it.
Native code that is not frozen goes on to call it: in bfloat16 its parts took 1.05 of the time.
"""

from typing import Any, Final

import torch
from torch import Tensor
from torch.fx import GraphModule, Node, Proxy
from torch.fx.proxy import GraphAppendingTracer
from torch.nn import functional as F

_LAYER: Final = torch._transformer_encoder_layer_fwd
_MASK: Final = 18  # the argument's position


def inline(graph: GraphModule) -> None:
    """Replaces encoder layers of xpu tensors, before AOTAutograd has the graph. A layer
    with a mask stays: its mask may hide all keys, and then nothing is defined."""
    tracer = GraphAppendingTracer(graph.graph)
    for node in graph.graph.find_nodes(op="call_function", target=_LAYER):
        if node.kwargs or any(node.args[_MASK:]) or not _is_on_xpu(node.args[0]):
            continue
        with graph.graph.inserting_before(node):
            given: Any = [
                Proxy(each, tracer) if isinstance(each, Node) else each
                for each in node.args[:_MASK]
            ]
            # Under autocast the norms of the parts give float32, and the op does not.
            dtype = node.meta["example_value"].dtype
            layer = _encoder_layer(*given).to(dtype).node
            layer.meta.update(node.meta)
            node.replace_all_uses_with(layer)
        graph.graph.erase_node(node)
    graph.recompile()


def _is_on_xpu(node: Any) -> bool:
    value = node.meta.get("example_value")
    return isinstance(value, Tensor) and value.device.type == "xpu"


def _encoder_layer(
    src: Tensor,
    width: int,
    heads: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    out_weight: Tensor,
    out_bias: Tensor,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    norm_weight_1: Tensor,
    norm_bias_1: Tensor,
    norm_weight_2: Tensor,
    norm_bias_2: Tensor,
    weight_1: Tensor,
    bias_1: Tensor,
    weight_2: Tensor,
    bias_2: Tensor,
) -> Any:
    """The layer of [batch, length, width]: attention, and two products with an activation
    between them. Both are added to their operand."""

    def norm(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return F.layer_norm(x, (width,), weight, bias, eps)

    def attention(x: Tensor) -> Tensor:
        joined: Any = F.linear(x, qkv_weight, qkv_bias)
        qkv = joined.unflatten(-1, (3, heads, -1)).permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(qkv[0], qkv[1], qkv[2])
        return F.linear(attended.transpose(1, 2).flatten(2), out_weight, out_bias)

    def products(x: Tensor) -> Tensor:
        inner = F.linear(x, weight_1, bias_1)
        inner = F.gelu(inner) if use_gelu else F.relu(inner)
        return F.linear(inner, weight_2, bias_2)

    if norm_first:
        x = src + attention(norm(src, norm_weight_1, norm_bias_1))
        return x + products(norm(x, norm_weight_2, norm_bias_2))
    x = norm(src + attention(src), norm_weight_1, norm_bias_1)
    return norm(x + products(x), norm_weight_2, norm_bias_2)

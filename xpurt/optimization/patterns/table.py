"""The table of patterns, tried in this order.

Note [Patterns that are not fused]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
Only what takes less time is in the table. Left out are, with their share of the
processor time of the separate ops (one thread of an AMD EPYC, 1 and 128 tokens of 768,
float32 and bfloat16, 2026-11-26):

- the rotary embedding of transformers as torch.ops.xpurt.rotary_embedding: 1.0 to 3.4 on
  the CPU, 1.1 to 5.4 on xpu;
- an addition and an RMS norm as torch.ops.xpurt.rms_norm_add: 1.1 to 3.0 and 1.0 to 6.0.
  An addition goes into the primitive of the linear layer before it instead.
"""

from typing import Final

from torch.fx import Graph

from xpurt.optimization.patterns.attention import ATTENTION
from xpurt.optimization.patterns.int8_convolution import INT8_CONVOLUTION
from xpurt.optimization.patterns.pattern import Parameters, replace
from xpurt.optimization.patterns.rms_norm import RMS_NORM
from xpurt.optimization.patterns.swiglu import SWIGLU

PATTERNS: Final = (ATTENTION, SWIGLU, RMS_NORM, INT8_CONVOLUTION)


def fuse_patterns(graph: Graph, parameters: Parameters) -> list[tuple[str, str]]:
    """For each match the weight's name, or "", and the pattern's name."""
    rows: list[tuple[str, str]] = []
    for node in list(graph.nodes):
        for pattern in PATTERNS:
            match = pattern.find(node, parameters)
            if match is not None and replace(graph, match):
                name = parameters[match.weight] if match.weight else ""
                rows.append((name, pattern.name))
                break
    return rows

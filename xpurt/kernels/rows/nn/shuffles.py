"""Rows that move channels, by views and one copy."""

import torch
from torch import Tensor
from torch._prims_common import suggest_memory_format

from xpurt.kernels.kinds.decomposed import Decomposed
from xpurt.kernels.kinds.row import ARITHMETIC


def channel_shuffle(images: Tensor, groups: int) -> Tensor:
    """PyTorch's decomposition, in the memory format of the CPU's result."""
    from torch._decomp import decomposition_table  # takes long to import

    shuffle = decomposition_table[torch.ops.aten.channel_shuffle.default]
    shuffled: Tensor = shuffle(images, groups)
    return shuffled.contiguous(memory_format=suggest_memory_format(images))


ROWS = (
    Decomposed("pixel_shuffle", kind=ARITHMETIC),
    Decomposed("pixel_unshuffle", kind=ARITHMETIC),
    Decomposed("channel_shuffle", channel_shuffle, kind=ARITHMETIC),
)

"""Each op of PyTorch's database that takes images, with a tensor that has a temporary layout."""

from typing import Any

import pytest
import torch
from autocast_networks import with_layout
from torch import Tensor
from torch.testing import assert_close
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

from xpurt import _layouts
from xpurt.optimization.autocast import open_block

open_block.register()

# They say where elements are, and empty memory has no values.
OF_MEMORY = ("empty", "stride", "as_strided_copy", "_unsafe_masked_index", "resize_")


def is_of_images(value: Any) -> bool:
    return isinstance(value, Tensor) and value.dim() in (4, 5) and value.numel() > 1


def samples(op: OpInfo) -> list[SampleInput]:
    if torch.float32 not in op.supported_dtypes("cpu") or op.name.startswith(OF_MEMORY):
        return []
    found = []
    for sample in op.sample_inputs("cpu", torch.float32):
        if is_of_images(sample.input) and sample.input.is_floating_point():
            found.append(sample)
        if len(found) == 3:
            break
    return found


def temporary(plain: Tensor) -> Tensor:
    format = torch.channels_last if plain.dim() == 4 else torch.channels_last_3d
    made = torch.empty_like(plain, memory_format=format).copy_(plain)
    _layouts.note_temporary(made)
    return made


def called(op: OpInfo, sample: SampleInput, input: Tensor) -> Any:
    torch.manual_seed(0)
    return op(input, *sample.args, **sample.kwargs)


NAMES = sorted({op.name for op in op_db})


@pytest.mark.parametrize("part", range(8))
def test_an_op_computes_the_same(part: int) -> None:
    """Random ones draw the same numbers, and a view may be taken of each new result."""
    tried = 0
    for op in op_db:
        if NAMES.index(op.name) % 8 != part:
            continue
        for sample in samples(op):
            plain = sample.input.detach().clone(memory_format=torch.contiguous_format)
            try:
                expected = called(op, sample, plain.clone())
            except (RuntimeError, TypeError, ValueError, NotImplementedError):
                continue
            with torch.no_grad(), with_layout("cpu", torch.float32):
                given = temporary(plain)
                found = called(op, sample, given)
                if isinstance(found, Tensor) and found.layout is torch.strided:
                    was_temporary = _layouts.is_temporary(found)
                    if expected.is_contiguous() and was_temporary:
                        found.view(-1)
            assert_close(
                found,
                expected,
                rtol=1e-4,
                atol=1e-4,
                equal_nan=True,
                msg=lambda text, op=op: f"{op.name}: {text}",
            )
            tried += 1
    assert tried > 10

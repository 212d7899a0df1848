"""One operand on the CPU beside others on xpu. PyTorch's fake tensors tell whether an op
takes such operands; if they refuse, xpu has to refuse, too, with an error that names
devices."""

from functools import partial
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._pytree import tree_map

from xpurt.testing import Disagreement, outcome
from xpurt_tools.conformance.check_op import Inputs, OpCheck
from xpurt_tools.conformance.inputs import moved
from xpurt_tools.conformance.sweeps.of_ops import operands, with_leaves
from xpurt_tools.conformance.tested_device import tested_device
from xpurt_tools.conformance.trial import Verdict


def check_devices(check: OpCheck, index: int, sample: Any) -> None:
    inputs = tree_map(_detached, check.inputs(sample))
    tensors = operands(inputs)
    if len(tensors) < 2:
        return
    for position, tensor in tensors.items():
        # PyTorch takes a number as a CPU tensor without dimensions beside any device.
        if tensor.dim():
            run = partial(_verdict, check, inputs, position)
            check.record.attempt(f"device.{position}", index, inputs, run)


def _verdict(check: OpCheck, inputs: Inputs, position: int) -> Verdict:
    there = moved(inputs, tested_device())
    mixed = with_leaves(there, {position: operands(inputs)[position].clone()})
    refusal = _refused_by_fakes(check, mixed)
    _, error = outcome(check.called, mixed)
    if refusal is None:
        return "raised"
    if error is None:
        raise Disagreement(
            f"PyTorch refuses operands on two devices ({refusal}); xpu gave a result"
        )
    if "device" not in str(error):
        raise Disagreement(
            f"PyTorch refuses operands on two devices ({refusal}); "
            f"xpu raised {type(error).__name__} ({error})"
        )
    return "raised"


def _refused_by_fakes(check: OpCheck, mixed: Inputs) -> str | None:
    """The error of the call with fake tensors, if it is about devices."""
    with FakeTensorMode() as mode:
        fakes = tree_map(
            lambda leaf: (
                mode.from_tensor(leaf) if isinstance(leaf, torch.Tensor) else leaf
            ),
            mixed,
        )
        _, error = outcome(check.called, fakes)
    text = str(error)
    return text.splitlines()[0] if error and "devices" in text else None


def _detached(leaf: Any) -> Any:
    return leaf.detach() if isinstance(leaf, torch.Tensor) else leaf

"""Parameters that are bfloat16, with the lower half of float32 in a buffer beside them.

Note [Split parameters]
~~~~~~~~~~~~~~~~~~~~~~~
The parameter stays the same object and becomes the upper half; see Note [Split floats].
The lower half of `weight` is the buffer `weight_lower_half` of the module, so that it
moves with the model. It is a row of bytes in the order of a contiguous parameter:
collectives know no integers of 16 bits, and `.to(memory_format=)` leaves a row alone.
It is not saved: hooks of the module give `state_dict` the float32 values, and split what
`load_state_dict` gets. A write to the parameter by others changes its upper half only;
the lower one is then at most half a step of bfloat16.

DistributedDataParallel sends the buffers of rank 0 to the others. Once is needed, where
ranks begin with other weights; its argument forward_sync_buffers=False leaves out the
times after, at each forward.
"""

from functools import partial
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from xpurt.optimization.training.split_floats import join, split, split_into

_KINDS: Final = (
    nn.Linear,
    nn.Conv1d,
    nn.Conv2d,
    nn.Conv3d,
    nn.ConvTranspose1d,
    nn.ConvTranspose2d,
    nn.ConvTranspose3d,
    nn.Embedding,
)
_NAMES: Final = ("weight", "bias")
_SUFFIX: Final = "_lower_half"


class SplitParameter:
    """The two halves, which belong to the module under the parameter's name."""

    def __init__(self, module: nn.Module, name: str) -> None:
        """Splits the parameter of the module, which is float32."""
        self.module = module
        self.name = name
        self.parameter = parameter = module.get_parameter(name)
        gradient, parameter.grad = parameter.grad, None
        parameter.data, lower = split(parameter.detach())
        if gradient is not None:
            parameter.grad = gradient.to(torch.bfloat16)
        row = lower.contiguous().view(-1).view(torch.uint8)
        module.register_buffer(name + _SUFFIX, row, persistent=False)

    def read(self, out: Tensor) -> Tensor:
        """Writes the float32 values to `out`, and returns it."""
        return join(*self._halves(), out)

    def float32(self) -> Tensor:
        """The float32 values, as a new tensor."""
        like = self.parameter.detach()
        return self.read(torch.empty_like(like, dtype=torch.float32))

    def write(self, x: Tensor) -> None:
        """Sets the float32 values. Uses up the memory of `x`."""
        split_into(x, *self._halves())

    def write_lower(self, x: Tensor) -> Tensor:
        """Sets the lower half of float32 values, and returns the upper one."""
        upper, lower = split(x.to(self.parameter.device))
        self._halves()[1].copy_(lower)
        return upper

    def _halves(self) -> tuple[Tensor, Tensor]:
        """Raises RuntimeError if the parameter was cast or replaced since."""
        upper = self.module.get_parameter(self.name)
        if upper is not self.parameter or upper.dtype != torch.bfloat16:
            found = "another parameter" if upper is not self.parameter else upper.dtype
            raise RuntimeError(
                f"{self.name} of {type(self.module).__name__} was split into bfloat16 "
                f"and 16 bits beside it, and is {found} now. Don't cast or shard a "
                "model after xpurt.optimize; to change it, load its state_dict into a "
                "new one."
            )
        row = self.module.get_buffer(self.name + _SUFFIX)
        return upper, row.view(torch.int16).view(upper.shape)


_Wanted = list[tuple[nn.Module, str, nn.Parameter]]


def parameters_to_split(model: nn.Module, optimizer: Optimizer) -> _Wanted:
    """The float32 parameters of linear layers, convolutions and embeddings that are
    trained by the optimizer or frozen, with their modules and their names there. Others
    stay: another optimizer may train them.

    Raises TypeError for a parameter that is not a plain one.
    """
    trained = {p for group in optimizer.param_groups for p in group["params"]}
    found: _Wanted = [
        (module, name, parameter)
        for module in model.modules()
        if isinstance(module, _KINDS)
        for name, parameter in module.named_parameters(recurse=False)
        if name in _NAMES and parameter.dtype == torch.float32
        if parameter in trained or not parameter.requires_grad
    ]
    for module, name, parameter in found:
        if type(parameter) is not nn.Parameter:
            raise TypeError(
                f"{name} of {type(module).__name__} can't be split into bfloat16 and 16 "
                f"bits beside it: it is a {type(parameter).__name__}. For fully_shard, "
                "give it mp_policy=MixedPrecisionPolicy(param_dtype=torch.bfloat16), "
                "which keeps float32 shards; materialize lazy modules before."
            )
    return found


def split_parameters(wanted: _Wanted) -> dict[nn.Parameter, SplitParameter]:
    """Splits them, a parameter of several modules once."""
    found: dict[nn.Parameter, SplitParameter] = {}
    for module, name, parameter in wanted:
        if parameter not in found:
            found[parameter] = SplitParameter(module, name)
        _add_hooks(module, name, found[parameter])
    return found


def _add_hooks(module: nn.Module, name: str, split: SplitParameter) -> None:
    hooks: Any = module  # PyTorch's functions for hooks have no types
    hooks.register_state_dict_post_hook(partial(_give_float32, name, split))
    hooks.register_load_state_dict_pre_hook(partial(_take_float32, name, split))


def _give_float32(
    name: str,
    split: SplitParameter,
    module: nn.Module,
    state_dict: dict[str, Any],
    prefix: str,
    local_metadata: dict[str, Any],
) -> None:
    # With keep_vars=True the caller wants the parameter itself.
    if not isinstance(state_dict.get(prefix + name), nn.Parameter):
        state_dict[prefix + name] = split.float32()


def _take_float32(
    name: str,
    split: SplitParameter,
    module: nn.Module,
    state_dict: dict[str, Any],
    prefix: str,
    local_metadata: dict[str, Any],
    *rest: Any,
) -> None:
    given = state_dict.get(prefix + name)
    if given is None:
        return
    if local_metadata.get("assign_to_params_buffers"):
        raise RuntimeError(
            "load_state_dict(assign=True) would put other parameters in place of those "
            "that the optimizer trains. Load without it."
        )
    if given.is_floating_point() and given.shape == split.parameter.shape:
        # The dictionary is a copy, made by load_state_dict.
        state_dict[prefix + name] = split.write_lower(given.detach().float())

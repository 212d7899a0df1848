"""Optimizers that train split parameters, as if these were float32.

Note [Steps in float32]
~~~~~~~~~~~~~~~~~~~~~~~
The optimizer keeps its parameters, groups, hooks and methods; its class becomes a
subclass of its own. A step joins the halves of a few parameters, and gives the original
step float32 tensors in their place, with gradients in float32 and the parameters' state.
Then it splits them again, into the same memory. So the state is float32, and an
optimizer that updates each parameter by itself computes what it does in float32. Beside
the model, float32 copies of a chunk of parameters and of their gradients are all the
memory that a step takes.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import torch
from torch import Tensor, nn, optim
from torch.optim import Optimizer

from xpurt.optimization.named_class import subclass
from xpurt.optimization.training.fused_optimizers import use_fused
from xpurt.optimization.training.scratch import Scratch, padded
from xpurt.optimization.training.split_parameters import SplitParameter

# Of the float32 parameters of a chunk; a larger parameter is a chunk by itself.
CHUNK_BYTES: Final = 1 << 24

# Those that update each parameter by itself, which LBFGS does not.
KINDS: Final = (
    optim.SGD,
    optim.Adam,
    optim.AdamW,
    optim.Adadelta,
    optim.Adafactor,
    optim.Adagrad,
    optim.Adamax,
    optim.ASGD,
    optim.Muon,
    optim.NAdam,
    optim.RAdam,
    optim.RMSprop,
    optim.Rprop,
    optim.SparseAdam,
)


class SplitOptimizer(Optimizer):
    """What is common to the classes. The other base of each is one of KINDS."""

    _splits: dict[nn.Parameter, SplitParameter]
    _uses_fused: bool
    _scratch: Scratch
    _original_class: type[Optimizer]

    @Optimizer.profile_hook_step
    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """A step of the original optimizer on the float32 values."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for chunk in self._chunks():
            self._step(chunk)
        self._opt_called = True
        return loss

    def _chunks(self) -> Iterator[list[nn.Parameter]]:
        """The parameters with a gradient, in pieces."""
        chunk: list[nn.Parameter] = []
        size_bytes = 0
        for parameter in self._parameters():
            if parameter.grad is None:
                continue
            of_this = 4 * parameter.numel() if parameter in self._splits else 0
            if chunk and size_bytes + of_this > CHUNK_BYTES:
                yield chunk
                chunk, size_bytes = [], 0
            chunk.append(parameter)
            size_bytes += of_this
        if chunk:
            yield chunk

    def _parameters(self) -> Iterator[nn.Parameter]:
        for group in self.param_groups:
            yield from group["params"]

    def _step(self, chunk: list[nn.Parameter]) -> None:
        groups, state = self.param_groups, self.state
        self._scratch.take_back()
        given: dict[nn.Parameter, Tensor] = {
            p: self._float32(p) if p in self._splits else p for p in chunk
        }
        self.param_groups = [
            {**group, "params": [given[p] for p in group["params"] if p in given]}
            for group in groups
        ]
        self.state = defaultdict(
            dict, {given[p]: state[p] for p in chunk if p in state}
        )
        try:
            _unhooked_step(self._original_class)(self)
            for p, x in given.items():
                if p in self._splits:
                    self._splits[p].write(x)
        finally:
            state.update(
                {p: self.state[x] for p, x in given.items() if x in self.state}
            )
            self.param_groups, self.state = groups, state

    def _float32(self, parameter: nn.Parameter) -> Tensor:
        gradient = parameter.grad
        assert gradient is not None
        x = self._splits[parameter].read(self._scratch.empty_like(parameter))
        if gradient.layout == torch.strided:
            x.grad = self._scratch.empty_like(parameter).copy_(gradient)
        else:
            x.grad = gradient.to(torch.float32)
        return x

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """As the original, which casts the state to the dtype of the parameters: float32
        tensors without memory of their own stand in for them."""
        stand_ins: dict[Any, Any] = {
            p: torch.empty((), dtype=torch.float32, device=p.device).expand(p.shape)
            for p in self._parameters()
            if p in self._splits
        }
        self._exchange(stand_ins)
        try:
            super().load_state_dict(state_dict)
        finally:
            self._exchange({stand_in: p for p, stand_in in stand_ins.items()})

    def _exchange(self, new: dict[Any, Any]) -> None:
        for group in self.param_groups:
            group["params"] = [new.get(p, p) for p in group["params"]]
        state = {new.get(p, p): each for p, each in self.state.items()}
        self.state = defaultdict(dict, state)

    def __getstate__(self) -> dict[str, Any]:
        own = {"_splits": self._splits, "_uses_fused": self._uses_fused}
        return {**super().__getstate__(), **own}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._scratch = _scratch_for(self._splits)
        if self._uses_fused:  # also after a checkpoint of an optimizer that is not
            use_fused(self)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _remade, (self._original_class,), self.__getstate__()


# Optimizer does the first at the first instance of a class, and a scheduler the second;
# `step` sets what the scheduler asks for.
vars(SplitOptimizer)["step"].hooked = True
vars(SplitOptimizer)["step"]._wrapped_by_lr_sched = True


def split_optimizer(
    optimizer: Optimizer, splits: dict[nn.Parameter, SplitParameter], *, fused: bool
) -> None:
    """Changes the class of the optimizer, which is one of KINDS. fused: `use_fused`."""
    vars(optimizer).pop("step", None)  # a scheduler's, around the original one
    vars(optimizer).update(_splits=splits, _uses_fused=fused)
    vars(optimizer).update(_scratch=_scratch_for(splits))
    optimizer.__class__ = _class_for(type(optimizer))
    if fused:
        use_fused(optimizer)


def _scratch_for(splits: Iterable[nn.Parameter]) -> Scratch:
    """For the parameters and the gradients of a chunk."""
    elements = sum(padded(parameter.numel()) for parameter in splits)
    return Scratch(2 * min(elements, CHUNK_BYTES // 4))


_classes: dict[type[Optimizer], type[SplitOptimizer]] = {}


def _class_for(kind: type[Optimizer]) -> type[SplitOptimizer]:
    if kind not in _classes:
        _classes[kind] = subclass(kind, SplitOptimizer, _original_class=kind)
    return _classes[kind]


def _remade(kind: type[Optimizer]) -> SplitOptimizer:
    made = _class_for(kind)
    return made.__new__(made)


def _unhooked_step(kind: type[Optimizer]) -> Callable[[Optimizer], Any]:
    """The hooks of a step run once, around all chunks."""
    step: Any = kind.step
    return step.__wrapped__ if getattr(step, "hooked", False) else step  # type: ignore[no-any-return]

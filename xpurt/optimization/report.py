"""What was done to a model, and what each module took before and after."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from xpurt.text.notebook import ShownInNotebooks


@dataclass(frozen=True, slots=True)
class ModuleTime:
    """Wall time of one call with the sample, in milliseconds; the module's children are
    part of it."""

    name: str
    kind: str
    before_ms: float
    after_ms: float


@dataclass(slots=True)
class Report(ShownInNotebooks):
    """The attribute `report` of an optimized model.

    done: the qualified name of each part that changed, and what was done.
    left: of each part that stays as it is, with the reason.
    times: per module, if there was a sample input.
    """

    done: list[tuple[str, str]] = field(default_factory=list)
    left: list[tuple[str, str]] = field(default_factory=list)
    times: list[ModuleTime] = field(default_factory=list)

    def __str__(self) -> str:
        lines = [f"{len(self.done)} parts optimized, {len(self.left)} left as they are"]
        for title, rows in (("optimized", self.done), ("left", self.left)):
            if rows:
                lines += ["", title]
                lines += [f"  {name or 'the model'}: {what}" for name, what in rows]
        if self.times:
            lines += ["", f"{'before':>10}{'after':>10}  ms per call"]
            lines += [
                f"{each.before_ms:10.3f}{each.after_ms:10.3f}  "
                f"{each.name or 'the model'} ({each.kind})"
                for each in self.times
            ]
        return "\n".join(lines)


def times_of(
    before: nn.Module, after: nn.Module, call: Callable[[nn.Module], Any]
) -> list[ModuleTime]:
    """The best of three calls each, in turns."""
    found: list[dict[str, float]] = [{}, {}]
    for _ in range(3):
        for model, best in zip((before, after), found, strict=True):
            with _timed(model) as took:
                call(model)
            for name, ms in took.items():
                best[name] = min(ms, best.get(name, ms))
    kinds = {name: type(module).__name__ for name, module in before.named_modules()}
    return [
        ModuleTime(name, kinds[name], ms, found[1][name])
        for name, ms in found[0].items()
        if name in found[1]
    ]


@contextmanager
def _timed(model: nn.Module) -> Iterator[dict[str, float]]:
    """Milliseconds by the qualified name of each module that is called."""
    took: dict[str, float] = {}
    begun: list[float] = []
    handles = []
    for name, module in model.named_modules():
        if any(True for _ in module.children()) or name == "":

            def begin(*_: Any) -> None:
                _synchronize()
                begun.append(time.perf_counter())

            def end(*_: Any, name: str = name) -> None:
                _synchronize()
                ms = (time.perf_counter() - begun.pop()) * 1e3
                took[name] = took.get(name, 0.0) + ms

            handles += [
                module.register_forward_pre_hook(begin),
                module.register_forward_hook(end, always_call=True),
            ]
    try:
        yield took
    finally:
        for each in handles:
            each.remove()


def _synchronize() -> None:
    if torch.xpu.is_initialized():  # type: ignore[no-untyped-call]
        torch.xpu.synchronize()

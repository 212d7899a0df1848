"""What an optimized module knows beside what the user gave it: which form is faster, its
graphs, and the report. It is dropped with the module, and neither copied nor saved."""

from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary, ref

from torch import nn

from xpurt.optimization.captured_forward import CapturedForward
from xpurt.optimization.measured_forms import MeasuredForms
from xpurt.optimization.report import Report


class ModuleState:
    def __init__(self, module: nn.Module, report: Report | None, name: str) -> None:
        """report: where rows of the module go; name: the module's in it."""
        self._module, self._report, self._name = ref(module), report, name
        self._captured: CapturedForward | None = None
        self.forms = MeasuredForms(self._note_times)

    def captured(self, run: Callable[..., Any]) -> Callable[..., Any]:
        """`run`, which calls the forward as the user wrote it, as fused graphs."""
        if self._captured is None:
            module = self._module()
            assert module is not None
            self._captured = CapturedForward(module, run, self._note_fused)
        return self._captured.call

    def _note_fused(self, rows: list[tuple[str, str]]) -> None:
        if self._report is not None:
            for layer, what in rows:
                name = ".".join(each for each in (self._name, layer) if each)
                self._report.add(self._report.done, name, f"fused: {what}")

    def _note_times(self, before_us: float, after_us: float) -> None:
        if self._report is not None:
            took = f"{after_us:.0f} us, and {before_us:.0f} us as written"
            why = f"the optimized form took {took}: it is not used for such inputs"
            self._report.add(self._report.left, self._name, why)


_states: WeakKeyDictionary[nn.Module, ModuleState] = WeakKeyDictionary()


def state_of(module: nn.Module) -> ModuleState:
    """Made at the first use, also of a copy."""
    found = _states.get(module)
    if found is None:
        found = _states.setdefault(module, ModuleState(module, None, ""))
    return found


def begin_state(module: nn.Module, report: Report, name: str) -> None:
    _states[module] = ModuleState(module, report, name)


def forget_state(module: nn.Module) -> None:
    _states.pop(module, None)

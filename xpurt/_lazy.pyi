"""The types of the functions of csrc/python/lazy."""

from collections.abc import Callable
from typing import Any

from torch import Tensor, device

def init_lazy_backend() -> None:
    """Makes xpu the backend of the device "lazy", once per process."""

def lazy_device_type() -> str:
    """The type of the devices behind lazy ones: "xpu" at first."""

def lazy_device_types() -> list[str]:
    """Those that it may be in this process."""

def set_lazy_device_type(name: str) -> None:
    """Raises ValueError for another type, and RuntimeError while lazy tensors are alive."""

def real_device(lazy: device) -> device:
    """The device behind a lazy one. Raises IndexError if there is none."""

def lazy_device(real: device) -> device:
    """The reverse."""

def backend_devices() -> list[tuple[str, device]]:
    """Of all types: as torch::lazy names it, "XPU0", and as PyTorch does."""

def refuse_as_data(wrapper: Tensor) -> None:
    """PyTorch raises RuntimeError at `ordinary.data = wrapper` from now on."""

def lazy_over(xpu: Tensor) -> Tensor:
    """A lazy tensor with the value of an xpu tensor, whose memory graphs read. Who changes it
    has to run the graphs before. Raises TypeError for a tensor of another device."""

def real_value(lazy: Tensor) -> Tensor:
    """The value of a lazy tensor, on the device behind its own: runs its graph if need be. Nobody may write to it. Raises
    TypeError for a tensor of another device."""

def register_lazy_kernels() -> bool:
    """Gives kernels of the Lazy key to ops that were defined since the last call."""

def run_traced_collectives() -> None:
    """Runs the collectives of lazy tensors that were traced, and all else on their device."""

def set_lazy_compiler(
    compile: Callable[..., Any] | None,
    at_once: bool,
    find: Callable[..., Any] | None = None,
) -> None:
    """Traced graphs are compiled by it from now on: before their first run, or once that
    pays. `compile` takes the graph and the arguments of its run. It returns None, or a
    function, which does not outlive the graph, and a dict. The function takes the arguments
    in a list, which it may clear, and returns the results. The dict has the numbers that
    these have to be, by parameter. `find` is called
    like `compile`, before the first run of a graph, for what was compiled for another
    one."""

class LazyGraph:
    """A traced graph."""

    @property
    def script(self) -> Any:
        """Its torch._C.Graph."""

    @property
    def name(self) -> str:
        """As "lazy graph 3 of 71 ops"."""

    @property
    def runs(self) -> int:
        """Until it was compiled."""

    @property
    def run_us(self) -> float:
        """How long a run op by op takes; 0: that was not timed."""

def lazy_graph_states() -> list[tuple[str, str, int, float, float]]:
    """Of each graph that ran: its name, its text, its runs until it was compiled, the
    microseconds that one took, and those that all of them take before it is compiled."""

def lazy_graph_runs() -> list[tuple[str, str, str, int, float]]:
    """Of each graph that ran, and each form: its name, the form, the device, the calls, and
    the host's seconds in them."""

def reset_lazy_graph_runs() -> None: ...

"""`torch.<name>` of a prototype device."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import torch

from xpurt import _prototype
from xpurt.prototype.device_memory import DeviceMemory

Device = torch.device | str | int | None
# The attribute of a generator's state that carries other states.
_KEPT = "_xpurt_kept_for_recomputation"


class RuntimeModule(DeviceMemory, ModuleType):
    """What PyTorch and programs call on `torch.<name>`, as on `torch.cuda`."""

    _initialized = True

    def __init__(
        self,
        name: str,
        type: str,
        memory: str,
        devices: int,
        before: ModuleType | None,
        vendor: object | None,
    ) -> None:
        """before: PyTorch's own module for the type. What this one lacks is taken from
        there: PyTorch names some of it as it is imported. vendor: a module or an object
        whose functions take the place of this one's."""
        ModuleType.__init__(
            self, f"torch.{name}", f"The runtime of the prototype device {name}."
        )
        self._name = name
        self._type = type
        self._memory = memory
        self._devices = devices
        self._before = before
        self._kept: list[tuple[Callable[[int], Any], Callable[[int, Any], None]]] = []
        self.device = _device_class(self)
        self.Stream = _class_of_device(self, torch.Stream)
        self.Event = _class_of_device(self, torch.Event)
        for each in () if vendor is None else dir(vendor):
            if not each.startswith("__"):
                setattr(self, each, getattr(vendor, each))

    def is_available(self) -> bool:
        return True

    def _is_compiled(self) -> bool:
        return True

    def is_initialized(self) -> bool:
        return True

    def init(self) -> None:
        """Does nothing: a prototype is ready once it is made."""

    def _lazy_init(self) -> None:
        """As init()."""

    def _is_in_bad_fork(self) -> bool:
        return False

    def device_count(self) -> int:
        return self._devices

    def current_device(self) -> int:
        """The index of this thread's current device."""
        return _prototype.prototype_current(self._type)

    def set_device(self, device: Device) -> None:
        """Raises IndexError if there is no such device. A negative index does nothing."""
        _prototype.prototype_exchange(self._type, self._index(device))

    def get_device_name(self, device: Device = None) -> str:
        return f"prototype of {self._name}"

    def synchronize(self, device: Device = None) -> None:
        """Waits for all work on a device."""
        self.current_stream(device).synchronize()

    def current_stream(self, device: Device = None) -> torch.Stream:
        return _prototype.prototype_stream(self._type, self._index(device))

    def set_stream(self, stream: torch.Stream) -> None:
        """Makes `stream` the current one."""
        _prototype.prototype_exchange_stream(stream)

    @contextmanager
    def stream(self, stream: torch.Stream | None) -> Iterator[None]:
        """Within it, `stream` is the current one; None changes nothing."""
        if stream is None:
            yield
            return
        before = _prototype.prototype_exchange_stream(stream)
        try:
            yield
        finally:
            _prototype.prototype_exchange_stream(before)

    def default_generators(self) -> list[torch.Generator]:
        """One per device."""
        return [
            _prototype.prototype_generator(self._type, index)
            for index in range(self._devices)
        ]

    def manual_seed(self, seed: int) -> None:
        """Seeds the generator of the current device."""
        _prototype.prototype_generator(self._type, self.current_device()).manual_seed(
            seed
        )

    def manual_seed_all(self, seed: int) -> None:
        for each in self.default_generators():
            each.manual_seed(seed)

    def initial_seed(self) -> int:
        return _prototype.prototype_generator(
            self._type, self.current_device()
        ).initial_seed()

    def get_rng_state(self, device: Device = None) -> torch.Tensor:
        """A copy of the generator's state, uint8 on the CPU. It carries what
        `keep_for_recomputation` asks for."""
        index = self._index(device)
        state = _prototype.prototype_generator(self._type, index).get_state()
        if self._kept:
            setattr(state, _KEPT, [save(index) for save, _ in self._kept])
        return state

    def set_rng_state(self, new_state: torch.Tensor, device: Device = None) -> None:
        """Raises RuntimeError for what is no state of a generator."""
        index = self._index(device)
        _prototype.prototype_generator(self._type, index).set_state(new_state)
        for (_, restore), value in zip(
            self._kept, getattr(new_state, _KEPT, ()), strict=False
        ):
            restore(index, value)

    def keep_for_recomputation(
        self, save: Callable[[int], Any], restore: Callable[[int, Any], None]
    ) -> None:
        """`torch.utils.checkpoint` keeps the generator's state from before a computation,
        and sets it when it computes again. From now on it keeps what `save(index)` returns,
        too, and calls `restore(index, value)`, also when it sets back what was in force
        before."""
        self._kept.append((save, restore))

    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        return [torch.bfloat16, torch.float16]

    def is_bf16_supported(self, including_emulation: bool = True) -> bool:
        return True

    def _index(self, device: Device) -> int:
        if device is None:
            return self.current_device()
        if isinstance(device, int):
            return device
        found = torch.device(device)
        if found.type != self._name:
            raise ValueError(f"expected a device of {self._name}; found {found}")
        return self.current_device() if found.index is None else found.index

    def __getattr__(self, name: str) -> Any:
        before = self.__dict__.get("_before")
        if before is not None and hasattr(before, name):
            return getattr(before, name)
        raise AttributeError(f"torch.{self._name} has no {name!r}")


def _device_class(module: RuntimeModule) -> type:
    """The class `torch.<name>.device`."""

    class device:
        """Within it, the given device is the current one."""

        def __init__(self, device: Device) -> None:
            self._index = module._index(device)
            self._before = -1

        def __enter__(self) -> None:
            self._before = _prototype.prototype_exchange(module._type, self._index)

        def __exit__(self, *error: object) -> None:
            _prototype.prototype_exchange(module._type, self._before)

    return device


class _OfDevice(type):
    """The types `torch.<name>.Stream` and `torch.<name>.Event`: they make objects of
    PyTorch's, which takes no subclass of an event, and whose streams without a device are
    the accelerator's."""

    _made: type
    _module: RuntimeModule

    def __call__(cls, device: Device = None, **options: Any) -> Any:
        if device is None and "stream_id" in options:
            return cls._made(**options)
        index = cls._module._index(device)
        return cls._made(torch.device(cls._module._name, index), **options)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls._made)


def _class_of_device(module: RuntimeModule, made: type) -> Any:
    return _OfDevice(made.__name__, (), {"_made": made, "_module": module})
